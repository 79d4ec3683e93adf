package policy

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestTheGuardJudgesRequests(t *testing.T) {
	g := load(t, Options{}).Guard()
	req := sandbox.Request{Backend: driver.Info{Name: "memory"}, Spec: goodSpec(), Plan: driver.Plan{Isolation: driver.Container}}
	v, err := g.Judge(t.Context(), req)
	if err != nil || v.Decision != sandbox.Allow || len(v.Findings) > 0 {
		t.Fatalf("%v %s %+v", err, v.Decision, v.Findings)
	}

	req.Spec.Trust = driver.Trust{}
	if v, err = g.Judge(t.Context(), req); err != nil || v.Decision != sandbox.Warn {
		t.Errorf("unstated trust on a container: %v %s", err, v.Decision)
	}
	req.Plan.Isolation = driver.UserKernel // what the backend promises counts
	if v, err = g.Judge(t.Context(), req); err != nil || v.Decision != sandbox.Allow {
		t.Errorf("unstated trust on a user kernel: %v %s", err, v.Decision)
	}
	req.Spec.Trust = driver.Untrusted
	req.Spec.MultiTenant, req.Spec.Facts.Tenant = true, "acme"
	if v, err = g.Judge(t.Context(), req); err != nil || v.Decision != sandbox.Deny {
		t.Errorf("untrusted tenants on a user kernel: %v %s", err, v.Decision)
	}
	req.Spec.Isolation = driver.MicroVM // and so does what was asked, which the backend must keep
	if v, err = g.Judge(t.Context(), req); err != nil || v.Decision != sandbox.Allow {
		t.Errorf("untrusted tenants in a virtual machine: %v %s", err, v.Decision)
	}
}

// TestBothDoorsMakeTheSameResource holds what a program's request becomes
// against what a Terraform model would fill in, byte by byte.
func TestBothDoorsMakeTheSameResource(t *testing.T) {
	spec := goodSpec()
	spec.Detached = true
	spec.Facts.Tenant = "acme"
	spec.Network.Expose = []uint16{8080}
	request := FromRequest(sandbox.Request{
		Backend: driver.Info{Name: "memory"}, Spec: spec, Plan: driver.Plan{Isolation: driver.Container}, Secrets: []string{"PYPI", "API"},
	})
	plan := Input{Kind: KindSandbox, Stage: StagePlan, Resource: Resource{
		Backend:     new("memory"),
		Image:       ImageOf(goodImage),
		Isolation:   new("container"),
		Trust:       new("trusted"),
		TrustReason: new("built from our own repository"),
		MultiTenant: new(false),
		Profile:     new("strict"), LifetimeSeconds: new(int64(300)),
		Resources: Caps{CPUMillis: new(int64(1000)), MemoryMiB: new(int64(512)), DiskMiB: new(int64(256)), PIDs: new(int64(256))},
		Network: Network{
			Default: new("deny"), Mode: new("transparent"), Learn: new(false), Expose: []int64{8080},
			Egress: []Egress{{Host: new("PyPI.org."), Ports: []int64{443}, Why: new("packages")}}, // as somebody wrote it
		},
		Env:      []Env{{Name: "LANG", Value: "C.UTF-8"}},
		Secrets:  []string{"API", "PYPI"},
		Labels:   map[string]string{"owner": "data", "team": "data"},
		Reaper:   new("nightly"),
		Detached: new(true),
		Tenant:   new("acme"),
		Process:  Process{Privileged: new(false)},
		Restart:  new("no"), ServiceToken: new(false),
	}}
	bytes := func(in Input) string {
		s, err := newSubject(in)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.MarshalIndent(map[string]any{"resource": s.input["resource"], "facts": s.input["facts"]}, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if d := cmp.Diff(bytes(request), bytes(plan)); d != "" {
		t.Errorf("(-request +plan)\n%s", d)
	}
}

func TestALimitIsNeverRoundedDown(t *testing.T) {
	spec := goodSpec()
	spec.Lifetime = time.Hour + time.Millisecond
	r := FromSpec(driver.Info{}, spec, driver.Plan{}, nil)
	if *r.LifetimeSeconds != 3601 {
		t.Errorf("got %d", *r.LifetimeSeconds)
	}
}
