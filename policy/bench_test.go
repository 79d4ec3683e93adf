package policy

import (
	"fmt"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/policies"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func BenchmarkCompileBuiltinRules(b *testing.B) {
	for b.Loop() {
		if _, err := compileBuiltin(policies.Catalogue); err != nil {
			b.Fatal(err)
		}
	}
}

// The same rules as if they were a customer's, which are always checked.
func BenchmarkCompileAndCheck(b *testing.B) {
	for b.Loop() {
		sources, err := readSet(policies.Files)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := compile(builtin, sources); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadOnceCompiled(b *testing.B) {
	load(b, Options{})
	for b.Loop() {
		load(b, Options{})
	}
}

func BenchmarkJudge(b *testing.B) {
	e := load(b, Options{})
	for name, r := range map[string]Resource{"good": goodResource(), "bad": badResource()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				judge(b, e, Input{Kind: KindTemplate, Stage: StagePlan, Resource: r})
			}
		})
	}
	long := goodResource()
	for i := range 200 {
		long.Network.Egress = append(long.Network.Egress, Egress{Host: new(fmt.Sprintf("h%d.example.com", i))})
	}
	b.Run("200 egress rules", func(b *testing.B) {
		for b.Loop() {
			judge(b, e, Input{Kind: KindTemplate, Stage: StagePlan, Resource: long})
		}
	})
}

func BenchmarkGuard(b *testing.B) {
	g := load(b, Options{}).Guard()
	req := sandbox.Request{Backend: driver.Info{Name: "memory"}, Spec: goodSpec(), Plan: driver.Plan{Isolation: driver.Container}}
	for b.Loop() {
		if v, err := g.Judge(b.Context(), req); err != nil || v.Decision != sandbox.Allow {
			b.Fatal(err, v.Decision)
		}
	}
}

// What waivers cost: none, a hundred about something else, one of them about this.
func BenchmarkWaivers(b *testing.B) {
	for _, name := range []string{"none", "elsewhere", "here"} {
		var waivers []Waiver
		for i := range 100 {
			if name != "none" {
				waivers = append(waivers, goodWaiver(func(w *Waiver) {
					w.ID = fmt.Sprintf("W-%d", i)
					if name == "elsewhere" || i > 0 {
						w.Target.Name = fmt.Sprintf("t%d", i)
					}
				}))
			}
		}
		e := load(b, Options{Waivers: waivers, Now: clock})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				judge(b, e, forking())
			}
		})
	}
}

func BenchmarkLoadBundle(b *testing.B) {
	private, public := keys(b, algES256)
	raw := signed(b, private, teamFiles())
	for b.Loop() {
		load(b, acme(Bundle{From: bytesOf(raw), Key: public}))
	}
}

// A plan of ten thousand resources, of which one in a hundred is swept by
// nothing.
func BenchmarkJudgeGraph(b *testing.B) {
	e := load(b, Options{})
	g := Graph{Stage: StageFile, Nodes: []Node{{Kind: KindReaperSchedule, Name: "nightly"}}}
	for i := range 10_000 {
		n := Node{Kind: KindTemplate, Address: fmt.Sprintf("sandboxio_template.t[%d]", i), Name: fmt.Sprintf("t%d", i), Reaper: new("nightly")}
		if i%100 == 0 {
			n.Reaper = new("nope")
		}
		g.Nodes = append(g.Nodes, n)
	}
	b.ReportAllocs()
	for b.Loop() {
		v, err := e.JudgeGraph(b.Context(), g)
		if err != nil || v.Decision != sandbox.Deny || len(v.Findings) != 100 {
			b.Fatal(err, v.Decision, len(v.Findings))
		}
	}
}
