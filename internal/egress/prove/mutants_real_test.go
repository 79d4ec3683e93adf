//go:build dockertest

package prove

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
)

var update = flag.Bool("update", false, "write shown.json")

// study is one protection that is taken away in a mode.
type study struct {
	mode  Mode
	lacks Protection
	open  func(t testing.TB, only []string) []string // lists what came through
}

// studies are all of them, the finest of a mode first.
func (s *site) studies() []study {
	var out []study
	for _, g := range gateways {
		out = append(out, study{Transparent, g.lacks, func(t testing.TB, only []string) []string {
			t.Helper()
			at := filepath.Join(t.TempDir(), "gateway")
			build(t, at, "../../../cmd/sandboxio-gateway", g.overlay(t, t.TempDir()))
			return came(s.elsewhere(t, os.Args[0], at, Transparent, only))
		}})
	}
	for _, p := range proxies {
		out = append(out, study{Proxy, p.lacks, func(t testing.TB, only []string) []string {
			t.Helper()
			at := filepath.Join(t.TempDir(), "owner")
			build(t, at, ".", p.overlay(t, t.TempDir()))
			return came(s.elsewhere(t, at, "", Proxy, only))
		}})
	}
	for _, m := range Modes() {
		out = append(out,
			study{m, "no other way", s.without(m, modest())},
			study{m, "no privileges, no other way", s.without(m, bare())})
	}
	return out
}

// rooms is how many runs there are at a time: an engine has room for three.
const rooms = 2

// TestMutants takes one protection after the other away and sees what comes
// through. This is what an attempt counts by: one that no mutant lets through
// shows nothing when it is closed. What has to come through is what the table
// says, and what may not is all that the table does not know; the rest was seen
// with a finer mutant. With -update everything is tried with each.
func TestMutants(t *testing.T) {
	s := newSite(t, "")
	table, err := readShown()
	if err != nil {
		t.Fatal(err)
	}
	all := s.studies()
	open := make([][]string, len(all))
	room := make(chan struct{}, rooms)
	t.Run("without", func(t *testing.T) {
		for i, study := range all {
			t.Run(fmt.Sprintf("%s in %s", study.lacks, study.mode), func(t *testing.T) {
				t.Parallel()
				room <- struct{}{}
				defer func() { <-room }()
				open[i] = study.see(t, table)
			})
		}
	})
	found := shown{}
	for i, study := range all {
		if found[study.mode] == nil {
			found[study.mode] = map[string]Protection{}
		}
		for _, name := range open[i] {
			if found[study.mode][name] == "" {
				found[study.mode][name] = study.lacks
			}
			if table[study.mode][name] == "" && !*update {
				t.Errorf("%s: %s comes through without %q, which the table does not say; to update it: go test -tags dockertest -run TestMutants -update ./internal/egress/prove", study.mode, name, study.lacks)
			}
		}
	}
	if *update {
		text, err := json.MarshalIndent(found, "", "  ")
		if err == nil {
			err = os.WriteFile("shown.json", append(text, '\n'), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// see gives what comes through. What the table says of it has to: once more
// tried, or twice, if a busy machine lost it before.
func (s study) see(t testing.TB, table shown) []string {
	t.Helper()
	var missing, only, open []string
	for _, a := range Catalogue() {
		switch by := table[s.mode][a.Name]; {
		case *update || !a.In(s.mode):
		case by == s.lacks:
			missing, only = append(missing, a.Name), append(only, a.Name)
		case by == "":
			only = append(only, a.Name)
		}
	}
	if len(missing) == 0 && !*update {
		t.Errorf("nothing in the table counts by it")
	}
	const tries = 3
	for range tries {
		came := s.open(t, only)
		t.Logf("%d of %d open: %s", len(came), len(only), strings.Join(came, " "))
		open = append(open, came...)
		missing = slices.DeleteFunc(missing, func(name string) bool { return slices.Contains(came, name) })
		if only = missing; len(only) == 0 {
			break
		}
	}
	if len(open) == 0 {
		t.Error("it is as closed as with it")
	}
	if len(missing) > 0 {
		t.Errorf("the table says that these come through: %q", missing)
	}
	return open
}

// came lists what came through.
func came(e Evidence) []string {
	var out []string
	for _, r := range e.Modes {
		for _, f := range r.Attempts {
			if f.Outcome == Open {
				out = append(out, f.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// build makes a prover's world, until what it gives is called.
func (s *site) build(t testing.TB, p *prover) (unbuild func()) {
	t.Helper()
	b, err := s.Open(t.Context(), Site{})
	if err == nil {
		p.program, err = os.ReadFile(s.Probe)
	}
	if err == nil {
		_, err = p.engine(t.Context(), b)
	}
	if err != nil {
		t.Fatal(err)
	}
	unbuild = func() {
		if err := errors.Join(p.close(context.Background()), b.Close()); err != nil {
			t.Error(err)
		}
	}
	if err := p.world.build(t.Context(), p.program); err != nil {
		unbuild()
		t.Fatal(err)
	}
	return unbuild
}

// without lists what comes through from a container on the canaries' network.
func (s *site) without(m Mode, h container.HostConfig) func(t testing.TB, only []string) []string {
	return func(t testing.TB, only []string) []string {
		t.Helper()
		return s.loose(t, m, h, only)
	}
}

func (s *site) loose(t testing.TB, m Mode, h container.HostConfig, only []string) []string {
	t.Helper()
	p := &prover{Options: s.Options}
	p.Only = only
	defer s.build(t, p)()
	ts, err := p.trials(m)
	if err != nil {
		t.Fatal(err)
	}
	all := ts.all
	if err := p.unprotected(t.Context(), m, ts.canaries, all, h); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, tr := range all {
		if !tr.control && tr.Control == Open {
			out = append(out, tr.Name)
		}
	}
	slices.Sort(out)
	return out
}

// TestProof is the proof itself, by both runtimes.
func TestProof(t *testing.T) {
	s := newSite(t, "")
	for _, runtime := range []string{"", "runsc"} {
		t.Run("on "+runtime, func(t *testing.T) {
			t.Parallel()
			o := s.Options
			o.Open, o.Runtime, o.Progress = open(runtime), runtime, func(said string) { t.Log(said) }
			e, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			e.Text(&b)
			t.Log(b.String())
			for _, p := range e.Problems() {
				t.Error(p)
			}
		})
	}
}
