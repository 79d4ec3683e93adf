package docker

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// maxVolumes bounds the volumes an image may declare; each takes its share of
// the disk cap.
const maxVolumes = 16

// disk is how a sandbox's disk cap is divided, in KiB. Every writable place
// is in it, so that the sum is the cap.
type disk struct {
	root  int64            // of a writable root; 0 for a read-only one
	shm   int64            // /dev/shm
	tmpfs map[string]int64 // by path
}

// memory is the part of the cap that lives in memory.
func (d disk) memory() int64 {
	sum := d.shm
	for _, kib := range d.tmpfs {
		sum += kib
	}
	return sum
}

// total is the whole cap.
func (d disk) total() int64 { return d.root + d.memory() }

// divide gives /work what the others do not need. A volume that the image
// declares would be a writable directory on the host's disk without any cap,
// so each becomes a tmpfs with a share of its own.
func divide(diskMiB int64, profile driver.Profile, volumes []string) (disk, error) {
	total := diskMiB << 10
	d := disk{tmpfs: map[string]int64{}}
	left := total
	if profile == driver.Compat {
		// The engine takes whole MiB.
		d.root = max(1, diskMiB/2) << 10
		left -= d.root
	}
	share := func(n int64) int64 { return left / n &^ 3 } // whole pages: the kernel would round up
	d.shm = share(8)
	d.tmpfs["/run"] = share(16)
	d.tmpfs["/tmp"] = share(4)
	for _, v := range volumes {
		d.tmpfs[v] = share(4 * int64(len(volumes)))
	}
	d.tmpfs["/work"] += left - d.memory()
	for _, p := range slices.Sorted(maps.Keys(d.tmpfs)) {
		if d.tmpfs[p] < 64 {
			return d, driver.Invalid("resources.disk_mib", fmt.Sprintf("%d MiB leave %d KiB for %s", diskMiB, d.tmpfs[p], p),
				"raise disk_mib, or use an image that declares fewer volumes")
		}
	}
	return d, nil
}

// volumesOf lists where an image declares volumes, and refuses places that
// a mount must not cover. Those we mount anyway need nothing.
func volumesOf(declared map[string]struct{}) ([]string, error) {
	var out []string
	for _, v := range slices.Sorted(maps.Keys(declared)) {
		p := path.Clean(v)
		switch {
		case !path.IsAbs(v), p == "/", strings.ContainsAny(v, ":,\x00\n"), under(p, "/proc"), under(p, "/sys"), under(p, "/dev"), under(p, guest.Dir), under(guest.Dir, p):
			return nil, driver.Invalid("image", fmt.Sprintf("it declares a volume at %q", v), "use an image without that VOLUME")
		case p == "/work", p == "/tmp", p == "/run":
		case slices.Contains(out, p):
		default:
			out = append(out, p)
		}
	}
	if len(out) > maxVolumes {
		return nil, driver.Invalid("image", fmt.Sprintf("it declares %d volumes", len(out)), fmt.Sprintf("use an image with at most %d", maxVolumes))
	}
	return out, nil
}

func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// tmpfsOptions are the mount options of a sandbox's tmpfs. uid and gid rather than
// mode, because an older runc ignores mode where the image has no directory.
func tmpfsOptions(kib int64, uid uint32) string {
	return fmt.Sprintf("rw,exec,nosuid,nodev,size=%dk,nr_inodes=%d,uid=%d,gid=%d,mode=0755", kib, max(1024, kib/4), uid, uid)
}
