package drivertest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// capped makes a check of one sandbox with tight caps, which must be usable
// after it ran into them.
func capped(name string, tight func(*driver.Resources), f func(t *trial, s driver.Sandbox, r driver.Resources) error) Check {
	return Check{Name: name, Control: true, Func: with(func(t *trial) error {
		spec := t.spec()
		tight(&spec.Resources)
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		if err := f(t, s, spec.Resources); err == errWhole { //nolint:errorlint // never wrapped
			return nil
		} else if err != nil {
			return err
		}
		if _, err := t.say(s, Exit, "0"); err != nil {
			return fmt.Errorf("the sandbox afterwards: %w", err)
		}
		return nil
	})}
}

// fell reports that a sandbox ended as a whole because its memory did, as one
// with a kernel of its own may. A backend that tells how its programs ended has
// to keep the sandbox.
func (t *trial) fell(err error) bool {
	return errors.Is(err, driver.CodeGone) && !t.b.Info().Can(driver.CanReportOOM)
}

// errWhole ends a check in which a sandbox fell.
var errWhole = errors.New("the sandbox ended as a whole")

func number(out output) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(string(out.stdout)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("no number: %v", out)
	}
	return n, nil
}

// burn gives the CPU time that a program got within a second, in ms.
func (t *trial) burn(s driver.Sandbox) (int64, error) {
	out, err := t.run(s, t.cmd(Burn))
	if err != nil {
		return 0, err
	}
	return number(out)
}

var caps = []Check{
	capped("caps: no more processes than allowed", func(r *driver.Resources) { r.PIDs, r.MemoryMiB = 64, 512 }, func(t *trial, s driver.Sandbox, r driver.Resources) error {
		out, err := t.run(s, t.cmd(Fork, "400"))
		if err != nil {
			return err
		}
		n, err := number(out)
		if err == nil && (n < 1 || n > r.PIDs) {
			err = fmt.Errorf("%d processes at once, with a cap of %d", n, r.PIDs)
		}
		return err
	}),
	capped("caps: no more memory than allowed", func(r *driver.Resources) { r.MemoryMiB = 96; r.DiskMiB = 16 }, func(t *trial, s driver.Sandbox, r driver.Resources) error {
		if got, err := t.say(s, Hog, "16"); err != nil || got != "held" {
			return fmt.Errorf("16 MiB are not granted: %q, %v", got, err)
		}
		out, err := t.run(s, t.cmd(Hog, "512"))
		if t.fell(err) {
			return errWhole
		}
		if err == nil && (out.exit.Code == 0 || len(out.stdout) > 0) {
			err = fmt.Errorf("512 MiB are held, with a cap of %d: %v", r.MemoryMiB, out)
		}
		return err
	}),
	capped("caps: no more disk than allowed, wherever it is writable", func(r *driver.Resources) { r.DiskMiB = 16 }, func(t *trial, s driver.Sandbox, r driver.Resources) error {
		const enospc = 28
		for _, dir := range []string{"/work", "/tmp", "/run"} {
			out, err := t.run(s, t.cmd(Fill, dir+"/big", "64"))
			if err != nil {
				return err
			}
			n, err := number(out)
			if err != nil {
				return err
			}
			if out.exit.Code != enospc || n > r.DiskMiB {
				return fmt.Errorf("%d MiB were written to %s, with a cap of %d: %v", n, dir, r.DiskMiB, out)
			}
		}
		return nil
	}),
	capped("caps: no more CPU than allowed", func(r *driver.Resources) { r.CPUMillis = 100 }, func(t *trial, s driver.Sandbox, r driver.Resources) error {
		// On a busy machine nothing gets much CPU, which would prove nothing:
		// a sandbox with a whole core has to get more first.
		control, err := t.create()
		if err != nil {
			return err
		}
		if err := t.eventually(limit/2, "even a whole core gives no more, so nothing can be proved", func() (bool, error) {
			n, err := t.burn(control)
			return n > 2*r.CPUMillis, err
		}); err != nil {
			return err
		}
		for range 3 {
			n, err := t.burn(s)
			if err == nil && n > 2*r.CPUMillis {
				err = fmt.Errorf("%d ms of CPU in a second, with a cap of %d", n, r.CPUMillis)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}),
	capped("caps: a program that runs out of memory falls alone", func(r *driver.Resources) { r.MemoryMiB = 96; r.DiskMiB = 16 }, func(t *trial, s driver.Sandbox, _ driver.Resources) error {
		small, err := t.background(s, t.cmd(Hang))
		if err != nil {
			return err
		}
		out, err := t.run(s, t.cmd(Hog, "512"))
		if t.fell(err) {
			return errWhole
		}
		if err != nil || out.exit.Code == 0 {
			return fmt.Errorf("512 MiB are held: %v, %v", out, err)
		}
		if err := t.running(small); err != nil {
			return fmt.Errorf("its neighbour: %w", err)
		}
		return small.Kill(t)
	}),
	capped("caps: no more disk than allowed, written from outside (M83)", func(r *driver.Resources) { r.DiskMiB = 8 }, func(t *trial, s driver.Sandbox, r driver.Resources) error {
		if !t.b.Info().Can(driver.CanFiles) {
			return nil // "files, undeclared" asks
		}
		f := s.Files()
		before, err := names(t, f, "/work")
		if err != nil {
			return err
		}
		w, err := f.Create(t, "/work/big", 0o644)
		if err != nil {
			return err
		}
		block := make([]byte, 1<<20)
		for n := int64(0); n < 2*r.DiskMiB && err == nil; n++ {
			_, err = w.Write(block)
		}
		err = errors.Join(err, w.Close())
		if err := wantCode(fmt.Sprintf("writing %d MiB with a cap of %d", 2*r.DiskMiB, r.DiskMiB), err, driver.CodeExhausted); err != nil {
			return err
		}
		if err := t.sameNames(f, "/work", before); err != nil {
			return err
		}
		return t.writeFile(f, "/work/small", []byte("x"), 0o644)
	}),
	{Name: "oom: a program that the memory cap ended is told from others (M67)", Capability: driver.CanReportOOM, Kind: Proof, Control: true, Func: oom(true)},
	{Name: "oom, undeclared: nothing false is said", Capability: driver.CanReportOOM, Kind: Refusal, Func: oom(false)},
}

// oom runs programs that ended for want of memory and otherwise; a backend
// that declares it must know, one that does not may not know, and none may be
// wrong.
func oom(declared bool) checkFunc {
	return with(func(t *trial) error {
		spec := t.spec()
		spec.Resources.MemoryMiB, spec.Resources.DiskMiB = 96, 16
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		for _, c := range []struct {
			probe Probe
			arg   string
			want  bool
		}{{Exit, "0", false}, {Exit, "137", false}, {Hog, "512", true}, {Raise, "KILL", false}} {
			out, err := t.run(s, t.cmd(c.probe, c.arg))
			if c.probe == Hog && t.fell(err) {
				fresh := t.spec()
				fresh.Resources = spec.Resources
				spec = fresh
				if s, err = t.createFrom(spec); err != nil {
					return err
				}
				continue
			}
			if err != nil {
				return err
			}
			switch told := out.exit.OOM; {
			case told == nil && declared:
				return fmt.Errorf("%s %s: it could not tell", c.probe, c.arg)
			case told != nil && *told != c.want:
				return fmt.Errorf("%s %s: OOM %v, want %v (%v)", c.probe, c.arg, *told, c.want, out)
			}
		}
		return nil
	})
}

var strict = []Check{
	{Name: "privileges: a program has none", Control: true, Func: inside(func(t *trial, s driver.Sandbox) error {
		text, err := t.say(s, Status)
		if err != nil {
			return err
		}
		field := map[string]string{}
		for line := range strings.Lines(text) {
			k, v, _ := strings.Cut(line, ":")
			field[k] = strings.TrimSpace(v)
		}
		for _, id := range []string{"Uid", "Gid"} {
			if numbers := strings.Fields(field[id]); len(numbers) == 0 || slices.Contains(numbers, "0") {
				err = errors.Join(err, fmt.Errorf("%s is %q", id, field[id]))
			}
		}
		// What a guest needs for itself stays in the bounding set, which it
		// cannot leave without one capability more; no-new-privileges makes
		// it unreachable.
		const guests = 1<<5 | 1<<6 | 1<<7 // KILL, SETGID, SETUID
		for set, allowed := range map[string]uint64{"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapAmb": 0, "CapBnd": guests} {
			if mask, perr := strconv.ParseUint(field[set], 16, 64); perr != nil || mask&^allowed != 0 {
				err = errors.Join(err, fmt.Errorf("%s is %q", set, field[set]))
			}
		}
		if field["NoNewPrivs"] != "1" {
			err = errors.Join(err, fmt.Errorf("NoNewPrivs is %q", field["NoNewPrivs"]))
		}
		// Where the host's kernel answers, it must be filtered.
		if s.Status().Isolation < driver.UserKernel && field["Seccomp"] != "2" {
			err = errors.Join(err, fmt.Errorf("seccomp is %q", field["Seccomp"]))
		}
		return err
	})},
	{Name: "strict: the root cannot be written, /work, /tmp and /run can", Capability: driver.CanStrict, Kind: Proof, Control: true, Func: inside(func(t *trial, s driver.Sandbox) error {
		for dir, ok := range map[string]bool{"/": false, "/etc": false, "/usr": false, "/var": false, "/work": true, "/tmp": true, "/run": true} {
			out, err := t.run(s, t.cmd(Write, strings.TrimSuffix(dir, "/")+"/drivertest"))
			if err != nil {
				return err
			}
			if ok && out.exit.Code != 0 {
				return fmt.Errorf("%s cannot be written: %v", dir, out)
			}
			const eacces, erofs = 13, 30
			if !ok && out.exit.Code != erofs && out.exit.Code != eacces {
				return fmt.Errorf("writing to %s: %v, want EROFS or EACCES", dir, out)
			}
		}
		return nil
	})},
	refused(driver.CanStrict, "profile", func(s *driver.Spec) { s.Profile = driver.Strict }),
	{Name: "compat: a sandbox with a writable root can be had", Capability: driver.CanCompat, Kind: Proof, Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Profile = driver.Compat
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		for _, dir := range []string{"/work", "/tmp"} {
			if _, err := t.say(s, Write, dir+"/drivertest"); err != nil {
				return err
			}
		}
		return nil
	})},
	refused(driver.CanCompat, "profile", func(s *driver.Spec) { s.Profile = driver.Compat }),
}
