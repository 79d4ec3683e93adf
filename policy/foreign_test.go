package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

func TestAnUnknownPartOfAContainerIsJudgedByNobody(t *testing.T) {
	e := load(t, Options{})
	for _, tc := range []struct {
		name    string
		kind    Kind
		change  func(*Resource)
		unknown []string
		want    map[string]sandbox.Decision
	}{
		{
			name: "a user", kind: KindContainer, unknown: []string{"process.user"},
			change: func(r *Resource) { r.Process.User = new("0") },
			want:   map[string]sandbox.Decision{"SBX-ISO-010 process.user": sandbox.Unknown},
		},
		{
			name: "a runtime takes the tier with it", kind: KindContainer, unknown: []string{"process.runtime"},
			change: func(r *Resource) { r.Isolation, r.Process.Runtime = nil, new("fast") },
			want:   map[string]sandbox.Decision{"SBX-ISO-001 process.runtime": sandbox.Unknown, "SBX-ISO-002 process.runtime": sandbox.Unknown},
		},
		{
			name: "one capability takes the list with it", kind: KindContainer, unknown: []string{"process.cap_add[0]"},
			change: func(r *Resource) { r.Process.CapAdd = []string{""} },
			want:   map[string]sandbox.Decision{"SBX-ISO-007 process.cap_add[0]": sandbox.Unknown},
		},
		{
			name: "a source leaves the other mounts judged", kind: KindContainer, unknown: []string{"mounts[0].source"},
			change: func(r *Resource) {
				r.Mounts = []Mount{{Type: new("bind")}, {Type: new("bind"), Source: new("/var/run/docker.sock")}}
			},
			want: map[string]sandbox.Decision{
				"SBX-ISO-005 mounts[1].source": sandbox.Deny, "SBX-ISO-006 mounts[0].source": sandbox.Unknown,
			},
		},
		{
			name: "all mounts", kind: KindContainer, unknown: []string{"mounts"},
			want: map[string]sandbox.Decision{
				"SBX-ISO-005 mounts": sandbox.Unknown, "SBX-ISO-006 mounts": sandbox.Unknown, "SBX-ISO-012 mounts": sandbox.Unknown,
			},
		},
		{
			name: "an address that a port is bound to", kind: KindContainer, unknown: []string{"network.publish[0].host_ip"},
			change: func(r *Resource) { r.Network.Publish = []Publish{{Port: new(int64(80))}} },
			want:   map[string]sandbox.Decision{"SBX-NET-012 network.publish[0].host_ip": sandbox.Unknown},
		},
		{
			name: "a word of the command", kind: KindContainer, unknown: []string{"command[1]"},
			change: func(r *Resource) { r.Command = []string{"run", "AKIAABCDEFGHIJKLMNOP", "https://a:b@h"} },
			want: map[string]sandbox.Decision{
				"SBX-SEC-002 command[1]": sandbox.Unknown, "SBX-SEC-004 command[2]": sandbox.Deny,
			},
		},
		{
			name: "a file", kind: KindContainer, unknown: []string{`files["/etc/app.conf"]`},
			want: map[string]sandbox.Decision{
				`SBX-SEC-002 files["/etc/app.conf"]`: sandbox.Unknown, `SBX-SEC-004 files["/etc/app.conf"]`: sandbox.Unknown,
			},
		},
		{
			name: "a value of the build leaves the others judged", kind: KindImage, unknown: []string{`build_args["A_TOKEN"]`},
			change: func(r *Resource) { r.BuildArgs = []Env{{Name: "B_TOKEN", Value: "x"}} },
			want:   map[string]sandbox.Decision{`SBX-SEC-003 build_args["B_TOKEN"]`: sandbox.Deny},
		},
		{
			name: "all values of the build", kind: KindImage, unknown: []string{"build_args"},
			want: map[string]sandbox.Decision{"SBX-SEC-003 build_args": sandbox.Unknown},
		},
		{
			name: "an endpoint", kind: KindProvider, unknown: []string{"provider.endpoint"},
			change: func(r *Resource) { r.Provider.Endpoint = new("tcp://10.0.0.5:2375") },
			want: map[string]sandbox.Decision{
				"SBX-PRV-001 provider.endpoint": sandbox.Unknown, "SBX-SEC-002 provider.endpoint": sandbox.Unknown, "SBX-SEC-004 provider.endpoint": sandbox.Unknown,
			},
		},
		{
			name: "everything of a network", kind: KindContainer, unknown: []string{"network"},
			want: map[string]sandbox.Decision{
				"SBX-NET-001 network": sandbox.Unknown, "SBX-NET-011 network": sandbox.Unknown, "SBX-NET-012 network": sandbox.Unknown,
				"SBX-SEC-002 network": sandbox.Unknown, "SBX-SEC-004 network": sandbox.Unknown,
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := goodOf(tc.kind)
			if tc.change != nil {
				tc.change(&r)
			}
			got := effects(judge(t, e, Input{Kind: tc.kind, Stage: StageFile, Resource: r, Unknown: tc.unknown}))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestNoTextOfAContainerReachesARule(t *testing.T) {
	const canary = "canary-7b1e"
	r := goodContainer()
	r.Command = []string{"sh", canary}
	r.Files = []Env{{Name: "/a", Value: canary}}
	r.Env = append(r.Env, Env{Name: "X", Value: canary})
	r.BuildArgs = []Env{{Name: "Y", Value: canary}}
	r.Mounts = []Mount{{Type: new("bind"), Source: new("/srv/" + canary)}}
	r.Provider.Endpoint = new("tcp://user:" + canary + "@host")
	s, err := newSubject(Input{Kind: KindContainer, Stage: StageFile, Resource: r, Sensitive: []string{"mounts[0].source"}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(s.input)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), canary) {
		t.Errorf("%s", raw)
	}
}

func TestCredentialsInCommandsAndFilesAreFound(t *testing.T) {
	r := goodContainer()
	r.Command = []string{"curl", "-H", "Authorization: Bearer abcdefghijklmnop0123"}
	r.Files = []Env{{Name: "/root/.npmrc", Value: "//registry.npmjs.org/:_authToken=npm_abcdefghijklmnopqrstuvwxyz0123456789"}}
	got := effects(judge(t, load(t, Options{}), Input{Kind: KindContainer, Stage: StageFile, Resource: r}))
	want := map[string]sandbox.Decision{"SBX-SEC-002 command[2]": sandbox.Deny, `SBX-SEC-002 files["/root/.npmrc"]`: sandbox.Deny}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
