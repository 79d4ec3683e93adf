package docker

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "rewrite seccomp.json")

// withheld are system calls of the default profile that a sandbox does not
// get. Calls that the default gives only with a capability that sandboxes do
// not have (mount, bpf, setns, unshare, perf_event_open, kexec, modules,
// quotactl …) go with those rules.
var withheld = []string{
	"socketcall",                                   // the 32-bit door around the socket filter
	"ipc",                                          // 32-bit too; the direct calls remain
	"modify_ldt",                                   // 16-bit code, a steady source of kernel bugs
	"fanotify_mark",                                // of no use without fanotify_init
	"memfd_secret",                                 // memory that the OOM killer's figures do not show
	"name_to_handle_at",                            // half of a known container escape
	"adjtimex", "clock_adjtime", "clock_adjtime64", // the host's clock
}

// families are the socket families a sandbox may open. Everything else,
// AF_VSOCK and AF_ALG above all, is a way to the hypervisor or into rarely
// used kernel code. AF_NETLINK is what lists interfaces.
var families = []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// never must not be in the profile in any form: the list is what a reviewer
// looks for, whatever upstream changes.
var never = []string{
	"io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key", "request_key", "bpf", "unshare", "setns",
	"mount", "umount", "umount2", "move_mount", "open_tree", "fsopen", "fsmount", "fsconfig", "fspick", "mount_setattr", "pivot_root", "chroot",
	"perf_event_open", "userfaultfd", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
	"open_by_handle_at", "name_to_handle_at", "swapon", "swapoff", "reboot", "iopl", "ioperm", "acct", "quotactl", "syslog",
	"settimeofday", "clock_settime", "clock_settime64", "stime", "kcmp", "pidfd_getfd", "socketcall", "process_madvise",
}

func narrowed() *seccomp.Seccomp {
	p := seccomp.DefaultProfile()
	// One architecture: 32-bit calls on a 64-bit kernel bypass argument
	// filters, so they are not answered at all.
	for i := range p.ArchMap {
		p.ArchMap[i].SubArches = nil
	}
	var out []*seccomp.Syscall
	socket := false
	for _, s := range p.Syscalls {
		if s.Includes != nil && len(s.Includes.Caps) > 0 {
			continue
		}
		if slices.Equal(s.Names, []string{"socket"}) {
			if !socket {
				socket = true
				for _, f := range families {
					out = append(out, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: []string{"socket"}, Action: specs.ActAllow,
						Args: []specs.LinuxSeccompArg{{Index: 0, Value: f, Op: specs.OpEqualTo}}}})
				}
			}
			continue
		}
		// No sandbox has a capability that would exclude a rule; engines
		// would ask the container's list for it.
		if s.Excludes != nil {
			s.Excludes.Caps = nil
		}
		if slices.Contains(s.Names, "socketpair") {
			// It makes a socket of the family before it finds that most have
			// no pairs.
			s.Names = slices.DeleteFunc(s.Names, func(n string) bool { return n == "socketpair" })
			out = append(out, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: []string{"socketpair"}, Action: specs.ActAllow,
				Args: []specs.LinuxSeccompArg{{Index: 0, Value: unix.AF_UNIX, Op: specs.OpEqualTo}}}})
		}
		s.Names = slices.DeleteFunc(s.Names, func(n string) bool { return slices.Contains(withheld, n) })
		if len(s.Names) > 0 {
			out = append(out, s)
		}
	}
	p.Syscalls = out
	return p
}

func TestSeccompProfile(t *testing.T) {
	want, err := json.MarshalIndent(narrowed(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("seccomp.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("seccomp.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("seccomp.json is not what its rules give; run: go test ./internal/backends/docker -run TestSeccompProfile -update\n%s", cmp.Diff(string(want), string(got)))
	}
	var p seccomp.Seccomp
	if err := json.Unmarshal(got, &p); err != nil {
		t.Fatal(err)
	}
	if p.DefaultAction != specs.ActErrno {
		t.Errorf("default action is %s", p.DefaultAction)
	}
	for _, s := range p.Syscalls {
		if s.Action == specs.ActErrno {
			continue
		}
		for _, n := range s.Names {
			if slices.Contains(never, n) {
				t.Errorf("%s is allowed", n)
			}
			if (n == "socket" || n == "socketpair") && len(s.Args) != 1 {
				t.Errorf("%s is allowed for any family", n)
			}
			if n == "clone" && len(s.Args) != 1 {
				t.Errorf("clone is allowed with any flags")
			}
		}
	}
}
