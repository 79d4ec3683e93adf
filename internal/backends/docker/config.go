package docker

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/outlet"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	cpuPeriod = 100_000 // µs

	// guestShare is added to the PID cap for the guest, as the disk cap is to
	// memory: PID 1's threads, and those of a bridge and a probe that must
	// start beside a workload that has used up its own.
	guestShare = 64

	hostname = "sandboxio"
)

// order is everything that one container is made of.
type order struct {
	spec     driver.Spec
	runtime  string // "" is the engine's default
	image    *image
	helper   *helper
	disk     disk
	uid      uint32
	created  time.Time // the engine's clock
	deadline time.Time
	expires  time.Time      // beyond which no deadline may be moved
	startBy  time.Time      // until when sweeps leave it alone; zero = driver.StartGrace after its creation
	outlet   *outlet.Outlet // nil but in mode proxy
	way      *way           // out of it, with a gateway; nil but in mode transparent
}

func (o order) name() string { return containerName(o.spec.Token, o.deadline) }

// boot is what PID 1 is told.
func (o order) boot() guest.Boot {
	b := guest.Boot{
		Owned:    !o.spec.Detached,
		Lifetime: o.spec.Lifetime,
		Longest:  o.expires.Sub(o.created),
		UID:      o.uid,
		NProc:    int(o.spec.Resources.PIDs),
		DiskMiB:  o.spec.Resources.DiskMiB,
	}
	if o.way != nil && promised(o.runtime) >= driver.UserKernel { // whose kernel does not know the engine's resolver
		b.Resolver = o.way.gateway
	}
	return b
}

func cpuQuota(millis int64) int64 { return max(1000, millis*cpuPeriod/1000) }

// memoryBytes is the cap given to the engine: files in tmpfs are memory, so
// the disk cap is added, and filling the disk does not kill the program.
func memoryBytes(r driver.Resources) int64 { return (r.MemoryMiB + r.DiskMiB) << 20 }

// cgroupPIDs is the cap given to the engine. The workload's own is a ulimit of
// its user, below it by the guest's share, so that a fork bomb does not take
// what the guest needs. gVisor's own threads on the host are in it too, about
// two for each of the workload's and 30 for itself, and reaching the cap ends
// the whole sandbox: there it is so high that the workload's own comes first.
func (o order) cgroupPIDs() int64 {
	pids := o.spec.Resources.PIDs
	if promised(o.runtime) >= driver.UserKernel {
		return 3*pids + 4*guestShare
	}
	return pids + guestShare
}

// newUID gives a sandbox a user of its own: inotify, processes and other
// things are counted per user over the whole host. The range is above what
// systems use, and below the guest's marks.
func newUID() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return 1<<20 + binary.LittleEndian.Uint32(b[:])%(1<<30)
}

// labels of the container: the caller's own, and ours over them.
func (o order) labels() map[string]string {
	spec := o.spec
	spec.Facts.Instance = spec.Token
	l := spec.NativeLabels(o.created, o.expires)
	if o.spec.Detached {
		l[labelDetached] = "true"
	}
	if proxied(o.spec.Network) {
		l[labelProxied] = "true"
	}
	if !o.startBy.IsZero() {
		l[labelStartBy] = strconv.FormatInt(o.startBy.Unix(), 10)
	}
	return l
}

// options is the create call. Every field of the image's configuration that
// could act is overridden; what is left of it is its environment, for the
// workload.
func (o order) options() client.ContainerCreateOptions {
	owned := !o.spec.Detached
	strict := o.spec.Profile == driver.Strict
	no, pids, r := false, o.cgroupPIDs(), o.spec.Resources
	stopTimeout := 2
	tmpfs := make(map[string]string, len(o.disk.tmpfs))
	for p, kib := range o.disk.tmpfs {
		tmpfs[p] = tmpfsOptions(kib, o.uid)
	}
	var storage map[string]string
	if o.disk.root > 0 {
		storage = map[string]string{"size": units.BytesSize(float64(o.disk.root << 10))}
	}
	limit := func(name string, n int64) *units.Ulimit { return &units.Ulimit{Name: name, Soft: n, Hard: n} }
	opts := client.ContainerCreateOptions{
		Name: o.name(),
		Config: &container.Config{
			Image:        o.image.id,
			Hostname:     hostname,
			User:         "0:0",
			Entrypoint:   []string{guest.Binary},
			Cmd:          o.boot().Args(),
			WorkingDir:   "/",
			Env:          o.image.unset, // a name without '=' takes the image's variable away
			Labels:       o.labels(),
			Healthcheck:  &container.HealthConfig{Test: []string{"NONE"}},
			StopSignal:   "SIGTERM",
			StopTimeout:  &stopTimeout,
			AttachStdin:  owned,
			AttachStdout: owned,
			AttachStderr: owned,
			OpenStdin:    owned,
			StdinOnce:    owned,
		},
		HostConfig: &container.HostConfig{
			Runtime:        o.runtime,
			NetworkMode:    "none",
			AutoRemove:     true,
			RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
			LogConfig:      container.LogConfig{Type: "none"},
			CapDrop:        []string{"ALL"},
			CapAdd:         []string{"SETUID", "SETGID", "KILL"},
			SecurityOpt:    []string{"no-new-privileges:true", "seccomp=" + seccompProfile},
			ReadonlyRootfs: strict,
			StorageOpt:     storage,
			Tmpfs:          tmpfs,
			ShmSize:        o.disk.shm << 10,
			IpcMode:        container.IPCModePrivate,
			CgroupnsMode:   container.CgroupnsModePrivate,
			Init:           &no,
			Mounts: []mount.Mount{{
				Type: mount.TypeVolume, Source: o.helper.volume, Target: guest.Dir, ReadOnly: true,
				// Without it, the engine fills an empty volume with what the
				// image has at this place.
				VolumeOptions: &mount.VolumeOptions{NoCopy: true},
			}},
			Resources: container.Resources{
				Memory:         memoryBytes(r),
				MemorySwap:     memoryBytes(r), // memory and swap together: no swap
				CPUPeriod:      cpuPeriod,
				CPUQuota:       cpuQuota(r.CPUMillis),
				PidsLimit:      &pids,
				OomKillDisable: &no,
				Ulimits:        []*units.Ulimit{limit("core", 0), limit("nproc", r.PIDs)},
			},
		},
	}
	if o.way != nil {
		o.way.into(&opts)
	}
	return opts
}
