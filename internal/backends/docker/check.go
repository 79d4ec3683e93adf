package docker

import (
	"cmp"
	"fmt"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Check decides without I/O whether an engine of this kind can enforce spec.
func (b *Backend) Check(spec driver.Spec) (driver.Plan, error) {
	var errs []error
	refuse := func(field, problem, fix string) { errs = append(errs, driver.Unsupported(field, problem, fix)) }

	if !instanceName.MatchString(spec.Token) {
		errs = append(errs, driver.Invalid("token", fmt.Sprintf("%q cannot be part of a container's name", spec.Token), "use 1 to 64 letters, digits, '_', '.' and '-'"))
	}
	if spec.Facts.Instance != "" && spec.Facts.Instance != spec.Token {
		errs = append(errs, driver.Invalid("facts.instance", "it is not the token", "set both to the same value"))
	}
	if spec.Image == "" {
		errs = append(errs, driver.Invalid("image", "no image is named and this backend has no default", `set image to "registry/repository@sha256:…"`))
	} else if _, err := driver.ParseImage(spec.Image); err != nil {
		errs = append(errs, err)
	}
	if spec.Lifetime < time.Second || spec.Lifetime > driver.MaxLifetime || spec.Lifetime%time.Second != 0 {
		errs = append(errs, driver.Invalid("lifetime", fmt.Sprintf("%v is not a whole number of seconds between 1s and %v", spec.Lifetime, driver.MaxLifetime), `lifetime = "300s"`))
	}
	if m := spec.MaxLifetime; m != 0 && (m < spec.Lifetime || m > driver.MaxLifetime || m%time.Second != 0) {
		errs = append(errs, driver.Invalid("max_lifetime", fmt.Sprintf("%v is not a whole number of seconds between the lifetime %v and %v", m, spec.Lifetime, driver.MaxLifetime), "leave it out for a lifetime that cannot be extended"))
	}
	errs = append(errs, checkResources(spec), driver.ValidateEnv("env", spec.Env), driver.ValidateLabels("labels", spec.Labels), spec.Trust.Validate())

	if tier := promised(b.opts.Runtime); !tier.Satisfies(spec.Isolation) {
		fix := "use a backend with a " + spec.Isolation.String() + " tier, or, if the code is trusted, say why and lower the floor"
		if driver.UserKernel.Satisfies(spec.Isolation) {
			fix = `set the backend's runtime to "runsc" (gVisor), or, if the code is trusted, say why and lower the floor`
		}
		refuse("isolation", fmt.Sprintf("%s was asked for, and a container on %s is %s", spec.Isolation, cmp.Or(b.opts.Runtime, "the default runtime"), tier), fix)
	}
	if spec.MultiTenant {
		refuse("multi_tenant", "tenants would share one kernel", "use a backend with a microvm tier, or one engine for each tenant")
	}
	net, err := b.checkNetwork(spec)
	errs = append(errs, err)

	d, err := divide(spec.Resources.DiskMiB, spec.Profile, nil)
	if err == nil && d.total() != spec.Resources.DiskMiB<<10 {
		err = driver.Invalid("resources.disk_mib", "the cap does not divide", "use another value")
	}
	errs = append(errs, err)
	switch {
	case spec.Profile != driver.Strict && spec.Profile != driver.Compat:
		refuse("profile", fmt.Sprintf("%s is not known", spec.Profile), `use "strict"`)
	case spec.Profile == driver.Compat && !b.opts.StorageQuota:
		refuse("profile", "a writable root has no disk cap on most engines, and caps always apply",
			`use profile "strict"; or, on an engine whose data root can enforce quotas (xfs with pquota), set storage_quota`)
	}

	if err := driver.Join(errs...); err != nil {
		return driver.Plan{}, named(err, "check", "")
	}
	return order{spec: spec, runtime: b.opts.Runtime, disk: d}.plan(net), nil
}

func checkResources(spec driver.Spec) error {
	resolved, err := spec.Resources.Resolve()
	if err == nil && resolved != spec.Resources {
		return driver.Invalid("resources", "a cap is zero", "resolve the resources first: every field is set in an order")
	}
	return err
}

// plan says how each part of the order is enforced.
func (o order) plan(net reach) driver.Plan {
	r, tier := o.spec.Resources, promised(o.runtime)
	memory := driver.Mechanism{Name: "memory", By: fmt.Sprintf("cgroup memory %d MiB, no swap", memoryBytes(r)>>20), Limits: "what is written to tmpfs counts; the kernel's own share is not all accounted"}
	pids := driver.Mechanism{Name: "pids", By: fmt.Sprintf("nproc %d for a user id of its own, cgroup pids %d", r.PIDs, o.cgroupPIDs()), Limits: "the guest's own come on top"}
	syscalls := driver.Mechanism{Name: "syscalls", By: "seccomp: own allowlist, 64-bit only", Limits: "the host's kernel is shared"}
	if tier >= driver.UserKernel {
		memory.Limits = "gVisor's own use counts; reaching it ends the whole sandbox, not one program; that there is no swap cannot be seen from inside"
		pids.By = fmt.Sprintf("gVisor's cgroup pids %d for the workload, the host's cgroup pids %d", r.PIDs, o.cgroupPIDs())
		syscalls = driver.Mechanism{Name: "syscalls", By: "gVisor's kernel (runtime " + o.runtime + "), probed from inside; seccomp inside it: own allowlist", Limits: "what gVisor itself asks of the host's kernel"}
	}
	return driver.Plan{
		Isolation: tier,
		Network:   net.by,
		Rules:     net.rules,
		Caps: []driver.Mechanism{
			{Name: "cpu", By: fmt.Sprintf("cgroup cpu quota %d/%d µs", cpuQuota(r.CPUMillis), cpuPeriod), Limits: "a cap, not a reservation"},
			memory,
			{Name: "disk", By: diskMechanism(o.disk), Limits: "files in tmpfs use memory"},
			pids,
			{Name: "lifetime", By: "the guest ends the sandbox; a sweep removes one that is frozen", Limits: "a paused sandbox ends at the next sweep"},
			{Name: "root", By: rootMechanism(o.spec.Profile)},
			syscalls,
			{Name: "privileges", By: "no capability, no-new-privileges, unique user id"},
		},
		Warnings: []string{},
	}
}

func diskMechanism(d disk) string {
	by := fmt.Sprintf("tmpfs size=%dk in all", d.memory())
	if d.root > 0 {
		by += fmt.Sprintf(", storage quota %dk on the root", d.root)
	}
	return by
}

func rootMechanism(p driver.Profile) string {
	if p == driver.Compat {
		return "writable, under the storage quota"
	}
	return "read-only"
}
