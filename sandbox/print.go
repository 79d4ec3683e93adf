package sandbox

import "fmt"

// Handles print what they are, never what they hold: package fmt would follow
// their pointers into commands, environments and options.

func (r *Runtime) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "sandbox.Runtime(%s)", r.info.Name)
}

func (s *Sandbox) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "sandbox.Sandbox(%s %s)", s.rt.info.Name, s.id)
}

func (p *Process) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "sandbox.Process(%s %s %s)", p.s.rt.info.Name, p.s.id, p.op.record.Program)
}

func (f *Files) Format(st fmt.State, _ rune) {
	_, _ = fmt.Fprintf(st, "sandbox.Files(%s %s)", f.s.rt.info.Name, f.s.id)
}
