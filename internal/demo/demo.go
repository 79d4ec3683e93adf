package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Options say what to run with.
type Options struct {
	Out     io.Writer
	Backend string // DSN; its scheme decides which half is shown
	Image   string // image of the sandboxes, with sh and python3
	CLI     string // path of this program; the provider lies beside it
	Bold    string // escape sequences around headings, or ""
	Plain   string
}

// demo is one run under way.
type demo struct {
	Options
	step      int
	steps     int
	terraform *terraform
	estate    *estate.Estate
	backend   driver.Backend
	engine    *engine // nil on a simulated backend
	manifest  []byte
}

// Run shows everything and cleans up whatever happens. An error says which
// promise did not hold.
func Run(ctx context.Context, o Options) (err error) {
	started := time.Now()
	d := &demo{Options: o, steps: 9}
	config, err := estate.FromDSN(o.Backend)
	if err != nil {
		return err
	}
	if config.Docker != nil {
		config.Docker.Image = o.Image
	}
	if d.estate, err = estate.Open(ctx, config); err != nil {
		return err
	}
	defer func() { err = driver.Join(err, d.estate.Close()) }()
	if d.backend, err = d.estate.Backend(ctx, ""); err != nil {
		return err
	}
	if d.terraform, err = newTerraform(ctx, o, d.backend.Info().Name); err != nil {
		return err
	}
	defer func() { // whatever a failed step left behind
		err = driver.Join(err, d.terraform.close(context.WithoutCancel(ctx)))
	}()
	if d.backend.Info().Simulated {
		return d.simulated(ctx, started)
	}
	if d.engine, err = openEngine(ctx, d.backend); err != nil {
		return err
	}
	d.terraform.env = append(d.terraform.env, "DOCKER_HOST="+d.engine.host())
	defer func() { err = driver.Join(err, d.engine.clean(context.WithoutCancel(ctx))) }()
	for _, step := range []func(context.Context) error{
		d.snapshot, d.planDenied, d.apply, d.runCode, d.egress, d.orphans, d.expired, d.destroy, d.nothingLeft,
	} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("step %d of %d: %w", d.step, d.steps, err)
		}
	}
	d.say("\n%sEverything held.%s %.1f s in all.\n", o.Bold, o.Plain, time.Since(started).Seconds())
	d.say("\nTo go on by hand:\n  the engine  %s, as --backend %s finds it\n  the image   export TF_VAR_image=%s\n", d.engine.host(), o.Backend, o.Image)
	return nil
}

// simulated is the half that needs no engine.
func (d *demo) simulated(ctx context.Context, started time.Time) error {
	d.steps = 3
	d.say("%sNo Docker engine answers here: this runs on the embedded memory:// backend.%s\nNothing below runs for real: no container is made, and no isolation is proven.\n", d.Bold, d.Plain)
	for _, step := range []func(context.Context) error{d.planDenied, d.apply, d.destroy} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("step %d of %d: %w", d.step, d.steps, err)
		}
	}
	d.say("  memory:// forgets with each provider process, so fewer are destroyed than were added\n")
	d.say("\n%sThe Terraform half held, simulated.%s %.1f s. For the rest, on a real engine:\n  sudo make demo\n", d.Bold, d.Plain, time.Since(started).Seconds())
	return nil
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.Out, format, args...) }

// head begins a step.
func (d *demo) head(format string, args ...any) {
	d.step++
	d.say("\n%s[%d/%d] %s%s\n", d.Bold, d.step, d.steps, fmt.Sprintf(format, args...), d.Plain)
}

// show prints what a program wrote, marked as such.
func (d *demo) show(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		d.say("  │ %s\n", strings.TrimRight(line, "\n"))
	}
}

func (d *demo) planDenied(ctx context.Context) error {
	d.head("An insecure template is denied at plan, by rule, attribute and fix")
	out, err := d.terraform.run(ctx, "insecure", "plan", "-input=false", "-no-color")
	if err == nil {
		return fmt.Errorf("the plan of the insecure template was not denied:\n%s", out)
	}
	if !strings.Contains(out, "SBX-") {
		return fmt.Errorf("the plan failed, but not by a rule: %w\n%s", err, out)
	}
	d.show(denials(out))
	return nil
}

// denials keeps of each error in a plan's output what is looked for: the rule,
// the place, what is wrong, the attribute and the fix.
func denials(out string) string {
	var b strings.Builder
	_, all, _ := strings.Cut(out, "Error: ")
	for i, one := range strings.Split(all, "Error: ") {
		if i > 0 {
			b.WriteByte('\n')
		}
		keep := true
		for l := range strings.Lines(one) {
			switch l = strings.TrimRight(l, "\n"); {
			case strings.HasPrefix(l, "See:"):
				keep = false
			case keep && l != "" && !strings.HasPrefix(l, "  with "):
				b.WriteString(l + "\n")
			}
		}
	}
	return b.String()
}

func (d *demo) apply(ctx context.Context) error {
	d.head("A good template is applied, with its network policy, reaper schedule and a detached sandbox")
	out, err := d.terraform.run(ctx, "quickstart", "apply", "-auto-approve", "-input=false", "-no-color")
	if err != nil {
		return fmt.Errorf("apply: %w\n%s", err, out)
	}
	d.show(line(out, "Apply complete!"))
	again, err := d.terraform.run(ctx, "quickstart", "plan", "-detailed-exitcode", "-input=false", "-no-color")
	if err != nil && !d.backend.Info().Simulated {
		return fmt.Errorf("a second plan is not empty: %w\n%s", err, again)
	}
	manifest, err := d.terraform.output(ctx, "quickstart", "manifest")
	if err != nil {
		return err
	}
	d.manifest = []byte(manifest)
	t, err := sandbox.ParseTemplate(d.manifest)
	if err != nil {
		return err
	}
	digest, err := t.Digest()
	if err != nil {
		return err
	}
	d.say("  template %s, %s\n", t.Name, digest)
	isolation, err := d.terraform.output(ctx, "quickstart", "isolation")
	d.say("  its detached sandbox measured %s\n", isolation)
	return err
}

// line is the line of out that begins with prefix.
func line(out, prefix string) string {
	for l := range strings.Lines(out) {
		if strings.HasPrefix(l, prefix) {
			return l
		}
	}
	return out
}

const hello = `import platform, os
print("hello from", platform.node() or "a sandbox", "- uid", os.getuid())
print("sum of squares:", sum(i * i for i in range(1000)))`

func (d *demo) runCode(ctx context.Context) error {
	d.head("An agent program loads the template's manifest and runs code in a sandbox of its own")
	rt, spec, err := d.runtime(ctx)
	if err != nil {
		return err
	}
	// The first creation of a program also connects and reads the guest back.
	first, err := d.timed(func() error { return closed(rt.Create(ctx, spec)) })
	if err != nil {
		return err
	}
	sb, err := rt.Create(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { _ = sb.Close() }()
	res, err := sb.Run(ctx, sandbox.Cmd{Args: []string{"python3", "-c", hello}})
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		return err
	}
	d.show(string(res.Stdout))
	var execs []time.Duration
	for range 5 {
		took, err := d.timed(func() error {
			_, err := sb.Run(ctx, sandbox.Cmd{Args: []string{"/bin/true"}})
			return err
		})
		if err != nil {
			return err
		}
		execs = append(execs, took)
	}
	slices.Sort(execs)
	st := sb.Status()
	d.say("  isolation %s: %s\n", st.Isolation, st.Evidence.Detail)
	for _, w := range sb.Warnings() {
		d.say("  warning: %s\n", w)
	}
	if err := sb.Close(); err != nil {
		return err
	}
	return d.compare(ctx, rt, spec, first, execs[2])
}

// compare sets a creation beside the engine's own calls for a container as
// closed, so that what is ours can be told from what is the engine's.
func (d *demo) compare(ctx context.Context, rt *sandbox.Runtime, spec sandbox.Spec, first, exec time.Duration) error {
	var ours, raw []time.Duration
	for range 5 {
		var sb *sandbox.Sandbox
		took, err := d.timed(func() (err error) { sb, err = rt.Create(ctx, spec); return err })
		if err = driver.Join(err, closed(sb, err)); err != nil {
			return err
		}
		ours = append(ours, took)
		took, err = d.timed(func() error {
			_, err := d.engine.run(ctx, d.Image, "none", []string{"sleep", "30"})
			return err
		})
		if err = driver.Join(err, d.engine.clean(ctx)); err != nil {
			return err
		}
		raw = append(raw, took)
	}
	slices.Sort(ours)
	slices.Sort(raw)
	own := "what is our own is less than the engine varies"
	if d := ours[2] - raw[2]; d > 0 {
		own = ms(d) + " are our own"
	}
	d.say("  created in %s (median of 5; the first, which verifies the guest, %s, with its removal), a bare container of the engine in %s: %s; one more exec %s\n",
		ms(ours[2]), ms(first), ms(raw[2]), own, ms(exec))
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func (d *demo) timed(do func() error) (time.Duration, error) {
	t0 := time.Now()
	err := do()
	return time.Since(t0), err
}

func closed(sb *sandbox.Sandbox, err error) error {
	if err != nil || sb == nil {
		return err
	}
	return sb.Close()
}

// runtime is what an agent program has: the template's manifest, and the
// policy that judged it.
func (d *demo) runtime(ctx context.Context) (*sandbox.Runtime, sandbox.Spec, error) {
	t, err := sandbox.ParseTemplate(d.manifest)
	if err != nil {
		return nil, sandbox.Spec{}, err
	}
	rt, err := d.estate.Runtime(ctx, "", sandbox.Options{Owner: "demo"})
	return rt, sandbox.Spec{Template: t, Tenant: "demo"}, err
}

func (d *demo) destroy(ctx context.Context) error {
	d.head("terraform destroy")
	out, err := d.terraform.run(ctx, "quickstart", "destroy", "-auto-approve", "-input=false", "-no-color")
	if err != nil {
		return fmt.Errorf("destroy: %w\n%s", err, out)
	}
	d.show(line(out, "Destroy complete!"))
	d.terraform.applied = false
	return nil
}

// Creator is the child whose death the demo watches: it makes a sandbox from
// the manifest, fills it with processes that do not want to die, says its id,
// and waits.
func Creator(ctx context.Context, out io.Writer, backend, manifest string) error {
	config, err := estate.FromDSN(backend)
	if err != nil {
		return err
	}
	e, err := estate.Open(ctx, config)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Clean(manifest))
	if err != nil {
		return err
	}
	t, err := sandbox.ParseTemplate(data)
	if err != nil {
		return err
	}
	rt, err := e.Runtime(ctx, "", sandbox.Options{Owner: "demo-creator"})
	if err != nil {
		return err
	}
	sb, err := rt.Create(ctx, sandbox.Spec{Template: t, Tenant: "demo"})
	if err != nil {
		return err
	}
	stubborn := `trap '' TERM HUP INT; setsid sleep 600 & (sleep 600 &) ; exec sleep 600`
	if _, err := sb.Start(ctx, sandbox.Cmd{Args: []string{"sh", "-c", stubborn}, Timeout: 10 * time.Minute}); err != nil {
		return driver.Join(err, sb.Close())
	}
	if err := json.NewEncoder(out).Encode(created{sb.ID()}); err != nil {
		return driver.Join(err, sb.Close())
	}
	<-ctx.Done()
	return sb.Close()
}

type created struct {
	ID string `json:"id"`
}
