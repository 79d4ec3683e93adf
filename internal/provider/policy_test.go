package provider_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/site"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// signer makes bundles of directories.
type signer struct {
	private, public []byte
}

func newSigner(t *testing.T) signer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, raw []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
	}
	var s signer
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	s.private = encode("PRIVATE KEY", raw, err)
	raw, err = x509.MarshalPKIXPublicKey(public)
	s.public = encode("PUBLIC KEY", raw, err)
	return s
}

// sign writes a bundle of revision 7 and the public key beside it.
func (s signer) sign(t *testing.T, name, dir string) (file, key string) {
	t.Helper()
	var out bytes.Buffer
	if err := policy.WriteBundle(t.Context(), &out, policy.BundleOptions{Set: policy.Source{Name: name, Dir: dir}, Revision: 7, Key: s.private}); err != nil {
		t.Fatal(err)
	}
	at := t.TempDir()
	file, key = filepath.Join(at, "bundle.tar.gz"), filepath.Join(at, "bundle.pub")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, s.public, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, key
}

func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// judged is a configuration whose template has pids, under a policy block.
func judged(policy string, pids int) string {
	if policy != "" {
		policy = "  policy {\n" + policy + "\n  }\n"
	}
	return fmt.Sprintf(`provider "sandboxio" {
  memory {}
%s}
resource "sandboxio_template" "t" {
  name         = "python"
  image        = %q
  reaper       = "sweep"
  trust        = "trusted"
  trust_reason = "built from our own repository"
  labels       = { owner = "data", tenant = "acme" }
  resources    = { pids = %d }
}
`, policy, image, pids)
}

// excuse is a waiver of 2000 processes.
func excuse(change ...string) string {
	text := fmt.Sprintf(`    waivers = [{
      id      = "W-1"
      rule    = "SBX-RES-005"
      target  = { name = "python" }
      path    = "resources.pids"
      value   = "2000"
      reason  = "the build forks once for each package"
      owner   = "team-build"
      expires = %q
    }]`, inTenDays())
	return strings.NewReplacer(change...).Replace(text)
}

func unwrapped(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(s)), " ")
}

func expect(t *testing.T, out string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(unwrapped(out), want) {
			t.Errorf("does not say %q:\n%s", want, out)
		}
	}
}

func TestAccAPolicyBlockThatCannotHoldIsRefusedOnItsAttribute(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	file, _ := s.sign(t, "strict", acctest.Lifetimes(t, 60))
	bundles := func(name, file, key, more string) string {
		return fmt.Sprintf("bundles = { %s = { file = %q, key = %q %s } }", name, file, key, more)
	}
	key := string(s.public)
	for _, c := range []struct{ name, block, want string }{
		{"a parameter that no rule has", "params = { max_pidz = 3 }", "Attribute: policy.params.max_pidz"},
		{"a parameter of another type", `params = { max_pids = "many" }`, "Attribute: policy.params.max_pids"},
		{"parameters that are no object", `params = "max_pids"`, "write an object"},
		{"another mode", `mode = "warn"`, "Attribute policy.mode value must be one of"},
		{"a bundle that is not there", bundles("strict", "/nowhere/x.tar.gz", key, ""), `Attribute: policy.bundles["strict"]`},
		{"a bundle that another key signed", bundles("strict", file, string(newSigner(t).public), ""), "verify JWT signature"},
		{"a bundle whose key is a private one", bundles("strict", file, string(s.private), ""), "it is a private key"},
		{"a bundle that is rolled back", bundles("strict", file, key, ", min_revision = 8"), "rollback: its revision is 7, and 8 is the least"},
		{"a bundle that is another file", bundles("strict", file, key, `, digest = "sha256:0"`), "which is asked for"},
		{"a bundle of another set", bundles("other", file, key, ""), `holds the set "strict"`},
		{"a set that is there twice", fmt.Sprintf("sources = { strict = %q }\n", acctest.Lifetimes(t, 60)) + bundles("strict", file, key, ""), "Attribute: policy.sources"},
		{"a waiver without a name", excuse(`"W-1"`, `""`), "Attribute: policy.waivers[0].id"},
		{"a waiver without a value, a reason or an end is told of", excuse("target", "targets"), `"target" is required`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := acctest.NewWorkspace(t, provider.Options{}, judged("    "+c.block, 64))
			out := w.Deny(t, "validate", "-no-color")
			expect(t, out, c.want)
			if strings.Contains(out, "BEGIN PRIVATE") {
				t.Errorf("a key is in:\n%s", out)
			}
		})
	}
}

func TestAccParametersAndModeOfThePolicyBlock(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t, provider.Options{}, judged("", 600))
	w.Must(t, "plan", "-no-color")
	w.Write(t, "main.tf", judged(`    params = { max_pids = 512, denied_ports = [22, 25] }`, 600))
	expect(t, w.Deny(t, "plan", "-no-color"), "Error: SBX-RES-005", "Warning: SBX-POL-001", "denied_ports is looser")
	w.Write(t, "main.tf", judged(`    params = { max_pids = 4096 }`, 2000))
	expect(t, w.Must(t, "plan", "-no-color"), "Warning: SBX-POL-001", "max_pids is looser")
	w.Write(t, "main.tf", judged(`    mode = "advise"`, 2000))
	expect(t, w.Must(t, "plan", "-no-color"), "Warning: SBX-RES-005", "Warning: SBX-POL-001", "the mode is advise")
}

func TestAccAWaiverExcusesTheValueItNamesAndIsToldOf(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t, provider.Options{}, judged("", 2000))
	expect(t, w.Deny(t, "plan", "-no-color"), "Error: SBX-RES-005")
	w.Write(t, "main.tf", judged(excuse(), 2000))
	expect(t, w.Must(t, "plan", "-no-color"), "Warning: SBX-RES-005 is waived", `waived by "W-1" of team-build until`, "Warning: SBX-POL-001")
	w.Write(t, "main.tf", judged(excuse(), 2001))
	expect(t, w.Deny(t, "plan", "-no-color"), "Error: SBX-RES-005", "Warning: SBX-WVR-002")
	for _, c := range []struct{ from, to, says string }{
		{inTenDays(), "2020-01-01", "it expired at"},
		{"the build forks once for each package", "because", "less than 20"},
	} {
		w.Write(t, "main.tf", judged(excuse(c.from, c.to), 2000))
		expect(t, w.Deny(t, "plan", "-no-color"), "Error: SBX-RES-005", "Warning: SBX-WVR-001", c.says)
	}
}

func inTenDays() string { return time.Now().UTC().AddDate(0, 0, 10).Format(time.DateOnly) }

func TestAccAWaiverThatExpiresAfterThePlanDeniesInTheApply(t *testing.T) {
	t.Parallel()
	var later atomic.Bool
	opts := provider.Options{Open: func(ctx context.Context, c estate.Config) (site.Estate, error) {
		c.Policy.Now = func() time.Time {
			if later.Load() {
				return time.Now().AddDate(0, 0, 12)
			}
			return time.Now()
		}
		return estate.Open(ctx, c)
	}}
	w := acctest.NewWorkspace(t, opts, judged(excuse(), 2000))
	expect(t, w.Must(t, "plan", "-no-color", "-out=tf.plan"), "SBX-RES-005 is waived")
	later.Store(true)
	expect(t, w.Deny(t, "apply", "-no-color", "tf.plan"), "Error: SBX-RES-005", "it expired at")
}

func TestAccABundleJudgesAsItsDirectoryDoes(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	file, key := s.sign(t, "strict", acctest.Lifetimes(t, 60))
	w := acctest.NewWorkspace(t, provider.Options{}, judged(fmt.Sprintf("    bundles = { strict = { file = %q, key = file(%q), min_revision = 7 } }", file, key), 64))
	expect(t, w.Deny(t, "plan", "-no-color"), "Error: ACME-001")
}

// The reviewed configuration can only be stricter than the floor.
func TestAccTheFloorHoldsWhateverThePolicyBlockSays(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	file, key := s.sign(t, "org", directory(t, map[string]string{"settings.yaml": "params: {max_pids: 512}\n"}))
	w := acctest.NewProcessWorkspace(t, judged("", 64))
	w.Apply(t)
	w.Env = append(w.Env, policy.FloorVariable+"="+file, policy.FloorKeyVariable+"="+key)
	plan := func(block string, pids int) string {
		w.Write(t, "main.tf", judged(block, pids))
		return w.Deny(t, "plan", "-no-color")
	}
	expect(t, plan("", 600), "Error: SBX-RES-005")
	expect(t, plan(`    mode = "advise"`, 65), "Error: SBX-POL-001", "the floor's enforce holds")
	expect(t, plan(`    params = { max_pids = 700 }`, 600), "Error: SBX-POL-001", "looser than the floor's 512", "Error: SBX-RES-005")
	expect(t, plan(excuse(), 2000), "Error: SBX-POL-001", "only the floor grants exemptions", "Error: SBX-RES-005")
	exempt := directory(t, map[string]string{"waivers.yaml": "waivers:\n  - id: W-2\n    rule: SBX-RES-005\n    target: {name: python}\n    path: resources.pids\n    value: 2000\n" +
		"    reason: the build forks once for each package\n    owner: me\n    expires: " + time.Now().UTC().AddDate(0, 0, 9).Format(time.DateOnly) + "\n"})
	expect(t, plan(fmt.Sprintf("    sources = { exempt = %q }", exempt), 2000), "Error: SBX-POL-001", "Error: SBX-RES-005")

	// What exists and did not change stops neither a plan nor its destroy.
	w.Write(t, "main.tf", judged(`    mode = "advise"`, 64))
	expect(t, w.Must(t, "plan", "-no-color"), "Warning: SBX-POL-001")
	w.Destroy(t)

	// A floor that cannot be used is an error, and never left out.
	w.Write(t, "main.tf", judged("", 64))
	w.Must(t, "plan", "-no-color")
	env := w.Env
	for name, set := range map[string]string{
		"rollback":             policy.FloorRevisionVariable + "=8",
		"no such file":         policy.FloorVariable + "=/nowhere/floor.tar.gz",
		"verify JWT signature": policy.FloorKeyVariable + "=" + string(newSigner(t).public),
		policy.FloorVariable:   policy.FloorVariable + "=",
	} {
		w.Env = append(slices.Clip(env), set)
		expect(t, w.Deny(t, "plan", "-no-color"), name)
	}
}
