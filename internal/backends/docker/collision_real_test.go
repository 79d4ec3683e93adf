//go:build dockertest

package docker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// stranger is somebody else who is faster, at the moment at which a part of a
// creation is to be made: with its name, or with its addresses.
type stranger struct {
	t    *testing.T
	cli  *client.Client
	by   string // the stranger's container or network
	note string
}

func (s *stranger) network(name string, subnet netip.Prefix) {
	s.t.Helper()
	res, err := s.cli.NetworkCreate(s.t.Context(), name, client.NetworkCreateOptions{Driver: "bridge", Labels: looseConfig("", "x").Labels,
		IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}}})
	if err != nil {
		s.t.Error(err)
		return
	}
	s.by, s.note = res.ID, name+" "+subnet.String()
	s.t.Cleanup(func() {
		if _, err := s.cli.NetworkRemove(cleanup(s.t), res.ID, client.NetworkRemoveOptions{}); err != nil {
			s.t.Errorf("the stranger's network %s: %v", name, err)
		}
	})
}

func (s *stranger) container(image, name string) {
	s.t.Helper()
	res, err := s.cli.ContainerCreate(s.t.Context(), client.ContainerCreateOptions{Name: name, Config: looseConfig(image, "true"), HostConfig: &container.HostConfig{NetworkMode: "none"}})
	if err != nil {
		s.t.Error(err)
		return
	}
	s.by, s.note = res.ID, name
	s.t.Cleanup(func() {
		if _, err := s.cli.ContainerRemove(cleanup(s.t), res.ID, client.ContainerRemoveOptions{Force: true}); err != nil {
			s.t.Errorf("the stranger's container %s: %v", name, err)
		}
	})
}

// TestANameThatIsTakenIsRefusedAndLeftToItsOwner is of every name that a
// creation with a gateway gives.
func TestANameThatIsTakenIsRefusedAndLeftToItsOwner(t *testing.T) {
	plain, image := engine(t)
	elsewhere := netip.MustParsePrefix("10.214.9.0/29")
	for _, of := range []string{"inside", "uplink", "gateway", "the sandbox"} {
		t.Run(of, func(t *testing.T) {
			b, m := meddled(t, plain.opts)
			s := &stranger{t: t, cli: raw(t, plain)}
			m.before = func(call string, r *http.Request, body []byte) []byte {
				switch {
				case call == "POST /networks/create of "+of+" #1":
					s.network(nameIn(t, body), elsewhere)
				case call == "POST /containers/create of "+of+" #1", call == "POST /containers/create #1" && of == "the sandbox":
					s.container(image, r.URL.Query().Get("name"))
				}
				return body
			}
			spec := realSpec(t, image)
			spec.Network.Egress = rules(t, "allowed.example")
			sb, err := b.Create(limited(t, time.Minute), spec)
			if err == nil {
				_ = sb.Kill(t.Context())
			}
			if s.by == "" {
				t.Fatal("nobody was faster")
			}
			t.Logf("%s: %v", s.note, err)
			e := driver.Problems(err)
			if len(e) != 1 || e[0].Code != driver.CodeConflict || e[0].Backend != Name || !strings.Contains(e[0].Hint, "create it again") {
				t.Errorf("%v", err)
			}
			if l := ofInstance(t, plain, spec.Token); len(l) > 0 {
				t.Errorf("left: %v", l)
			}
		})
	}
}

// TestAddressesThatAreTakenMeanwhileAreNotUsed has somebody take the addresses
// of each network just before it is made.
func TestAddressesThatAreTakenMeanwhileAreNotUsed(t *testing.T) {
	plain, image := engine(t)
	for _, of := range []string{"inside", "uplink"} {
		t.Run(of, func(t *testing.T) {
			b, m := meddled(t, plain.opts)
			s := &stranger{t: t, cli: raw(t, plain)}
			var theirs netip.Prefix
			m.before = func(call string, _ *http.Request, body []byte) []byte {
				if call == "POST /networks/create of "+of+" #1" {
					var made struct {
						IPAM struct {
							Config []struct{ Subnet netip.Prefix }
						}
					}
					if err := json.Unmarshal(body, &made); err != nil || len(made.IPAM.Config) != 1 {
						t.Errorf("%s: %v", body, err)
						return body
					}
					theirs = made.IPAM.Config[0].Subnet
					s.network(fmt.Sprintf("stranger-%d", time.Now().UnixNano()), theirs)
				}
				return body
			}
			spec := realSpec(t, image)
			spec.Network.Egress = rules(t, "allowed.example")
			sb, err := b.Create(limited(t, time.Minute), spec)
			if err != nil {
				t.Fatal(err)
			}
			ours := networksOf(t, plain, sb)
			if !theirs.IsValid() || len(ours) != 2 || slices.ContainsFunc(ours, func(n network.Summary) bool { return n.IPAM.Config[0].Subnet.Overlaps(theirs) }) {
				t.Errorf("its networks are %v, somebody else's is %s", ours, theirs)
			}
			if err := sb.Kill(t.Context()); err != nil {
				t.Error(err)
			}
			if l := ofInstance(t, plain, spec.Token); len(l) > 0 {
				t.Errorf("left: %v", l)
			}
		})
	}
}

// nameIn is the name of a network that is to be made.
func nameIn(t *testing.T, body []byte) string {
	t.Helper()
	var made struct{ Name string }
	if err := json.Unmarshal(body, &made); err != nil {
		t.Error(err)
	}
	return made.Name
}
