package policy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/bundle"
	opacompile "github.com/open-policy-agent/opa/v1/compile"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// keys makes a pair, in PEM.
func keys(t testing.TB, alg string) (private, public string) {
	t.Helper()
	var sk, pk any
	var err error
	switch alg {
	case algES256:
		var k *ecdsa.PrivateKey
		k, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		sk, pk = k, k.Public()
	case algEdDSA:
		pk, sk, err = ed25519.GenerateKey(rand.Reader)
	case "ES384":
		var k *ecdsa.PrivateKey
		k, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		sk, pk = k, k.Public()
	case "RS256":
		var k *rsa.PrivateKey
		k, err = rsa.GenerateKey(rand.Reader, 2048)
		sk, pk = k, k.Public()
	}
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, raw []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}))
	}
	raw, err := x509.MarshalPKCS8PrivateKey(sk)
	private = encode("PRIVATE KEY", raw, err)
	raw, err = x509.MarshalPKIXPublicKey(pk)
	return private, encode("PUBLIC KEY", raw, err)
}

// bytesOf is an Opener of what is in memory.
type bytesOf []byte

func (b bytesOf) Open(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(b)), nil
}
func (b bytesOf) String() string { return "memory" }

// signed is the set "acme" with these files, as a bundle of revision 7.
func signed(t testing.TB, private string, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteBundle(t.Context(), &out, BundleOptions{Set: source(t, files), Revision: 7, Key: []byte(private), Now: clock}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func teamFiles() map[string]string {
	return map[string]string{"team/rule.rego": customRule("ACME-001", "custom.acme.teams", teamRule), "team/rule_test.rego": "package custom.acme.teams_test\n"}
}

func acme(b Bundle) Options {
	return Options{Now: clock, Sources: []Source{{Name: "acme", Bundle: &b}}}
}

// unpack gives a bundle's files in order, pack makes one of files.
func unpack(t testing.TB, raw []byte) (names []string, files map[string][]byte) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	files = map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, files
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names, files[h.Name] = append(names, h.Name), body
	}
}

func pack(t testing.TB, names []string, files map[string][]byte, change func(*tar.Header)) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, name := range names {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(files[name]))}
		if change != nil {
			change(h)
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(files[name]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestABundleIsASetLikeItsDirectory(t *testing.T) {
	for _, alg := range []string{algES256, algEdDSA} {
		private, public := keys(t, alg)
		raw := signed(t, private, teamFiles())
		in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()}
		in.Resource.Labels["team"] = "ops"
		v := judge(t, load(t, acme(Bundle{From: bytesOf(raw), Key: public})), in)
		if !slices.Equal(said(v), []string{`ACME-001 deny labels["team"]`}) {
			t.Errorf("%s: %q", alg, said(v))
		}
		names, _ := unpack(t, raw)
		if slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, "_test.rego") }) {
			t.Errorf("%s: tests are in %q", alg, names)
		}
		info, err := VerifyBundle(t.Context(), Bundle{From: bytesOf(raw), Key: public})
		if err != nil || info != (BundleInfo{Name: "acme", Revision: 7, Files: 1}) {
			t.Errorf("%s: %+v %v", alg, info, err)
		}
	}
}

func TestABundleThatOPABuildsIsRead(t *testing.T) {
	private, public := keys(t, algES256)
	files := teamFiles()
	files["custom/acme/data.yaml"] = "waivers:\n- {id: W-1, rule: ACME-001, target: {name: python}, path: 'labels[\"team\"]', value: ops, reason: they are moving to another team, owner: me, expires: '2026-12-31'}\n"
	files[".manifest"] = `{"roots": ["custom/acme"]}`
	dir := source(t, files).Dir
	var out bytes.Buffer
	err := opacompile.New().WithOutput(&out).WithAsBundle(true).WithPaths(dir).WithRevision("8").
		WithBundleSigningConfig(bundle.NewSigningConfig(private, algES256, "")).Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Kind: KindTemplate, Stage: StagePlan, Name: "python", Resource: goodResource()}
	in.Resource.Labels["team"] = "ops"
	v := judge(t, load(t, acme(Bundle{From: bytesOf(out.Bytes()), Key: public, MinRevision: 8})), in)
	if v.Decision != sandbox.Allow || !slices.Equal(said(v), []string{`ACME-001 waived labels["team"]`}) {
		t.Errorf("%s %q", v.Decision, said(v))
	}
}

func TestABundleIsRefused(t *testing.T) {
	private, public := keys(t, algEdDSA)
	other, otherPublic := keys(t, algEdDSA)
	_, p256 := keys(t, algES256)
	_, p384 := keys(t, "ES384")
	_, rsaKey := keys(t, "RS256")
	raw := signed(t, private, teamFiles())
	names, files := unpack(t, raw)
	rule := names[slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, ".rego") })]
	with := func(name string, body []byte) []byte {
		changed := maps.Clone(files)
		changed[name] = body
		all := names
		if !slices.Contains(names, name) {
			all = append(slices.Clone(names), name)
		}
		return pack(t, all, changed, nil)
	}
	without := func(name string) []byte {
		return pack(t, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name }), files, nil)
	}
	// by hand signs what WriteBundle would not write.
	byHand := func(change func(*bundle.Bundle)) []byte {
		b, err := bundle.NewReader(bytes.NewReader(raw)).WithSkipBundleVerification(true).Read()
		if err != nil {
			t.Fatal(err)
		}
		change(&b)
		var out bytes.Buffer
		if err := b.GenerateSignature(bundle.NewSigningConfig(private, algEdDSA, ""), "", false); err != nil {
			t.Fatal(err)
		}
		if err := bundle.NewWriter(&out).DisableFormat(true).Write(b); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	// token is the bundle with a signature of another header and other bytes.
	token := func(header string, sign func(said []byte) []byte) []byte {
		var s struct{ Signatures []string }
		if err := json.Unmarshal(files["/.signatures.json"], &s); err != nil || len(s.Signatures) != 1 {
			t.Fatal(err, s)
		}
		said := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + strings.Split(s.Signatures[0], ".")[1]
		body, err := json.Marshal(map[string][]string{"signatures": {said + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(said)))}})
		if err != nil {
			t.Fatal(err)
		}
		return with("/.signatures.json", body)
	}
	roots := func(r ...string) []byte {
		return byHand(func(b *bundle.Bundle) { b.Manifest.Roots, b.Modules = &r, nil })
	}
	for _, tc := range []struct {
		name, want string
		b          Bundle
	}{
		{"when it is unsigned", "missing .signatures.json", Bundle{From: bytesOf(without("/.signatures.json")), Key: public}},
		{"when another key signed it", "verify JWT signature", Bundle{From: bytesOf(signed(t, other, teamFiles())), Key: public}},
		{"when another kind of key is expected", "verify JWT signature", Bundle{From: bytesOf(raw), Key: p256}},
		{"when no key is named", "it is no key in PEM", Bundle{From: bytesOf(raw)}},
		{"when the private key is named", "it is a private key", Bundle{From: bytesOf(raw), Key: private}},
		{"when two keys are named", "more than one key", Bundle{From: bytesOf(raw), Key: otherPublic + public}},
		{"when the key is of another curve", "signs no bundles", Bundle{From: bytesOf(raw), Key: p384}},
		{"when the key is RSA", "signs no bundles", Bundle{From: bytesOf(raw), Key: rsaKey}},
		{"when a rule was changed", "digest mismatch", Bundle{From: bytesOf(with(rule, append(slices.Clone(files[rule]), '\n'))), Key: public}},
		{"when a rule was taken out", "not found in the target bundle", Bundle{From: bytesOf(without(rule)), Key: public}},
		{"when a rule was put in", "not included in bundle signature", Bundle{From: bytesOf(with("/x.rego", []byte("package custom.acme.x\n"))), Key: public}},
		{"when its manifest was changed", "digest mismatch", Bundle{From: bytesOf(with("/.manifest", bytes.Replace(files["/.manifest"], []byte(`"7"`), []byte(`"9"`), 1))), Key: public}},
		{"when it is a delta", "delta bundle", Bundle{From: bytesOf(with("/patch.json", []byte(`{"data":[]}`))), Key: public}},
		{"when it holds WebAssembly", "made of Rego", Bundle{From: bytesOf(with("/policy.wasm", nil)), Key: public}},
		{"when it is rolled back", "it is a rollback", Bundle{From: bytesOf(raw), Key: public, MinRevision: 8}},
		{"when its revision is none", "number from 1 up", Bundle{From: bytesOf(byHand(func(b *bundle.Bundle) { b.Manifest.Revision = "v1.2" })), Key: public}},
		{"when it has no revision", "number from 1 up", Bundle{From: bytesOf(byHand(func(b *bundle.Bundle) { b.Manifest.Revision = "" })), Key: public}},
		{"when it is another file than asked for", "which is asked for", Bundle{From: bytesOf(raw), Key: public, Digest: "sha256:" + strings.Repeat("0", 64)}},
		{"when its root is everything", "its root is", Bundle{From: bytesOf(roots("")), Key: public}},
		{"when its root is the built-in rules", "its root is", Bundle{From: bytesOf(roots("sandboxio")), Key: public}},
		{"when it has two roots", "not one root", Bundle{From: bytesOf(roots("custom/acme", "custom/other")), Key: public}},
		{"when it holds another set", "and \"acme\" was expected", Bundle{From: bytesOf(roots("custom/other")), Key: public}},
		{"when it shadows a built-in rule", "do not permit", Bundle{From: bytesOf(with("/x.rego", []byte("package sandboxio.lib.cap\n"))), Key: public}},
		{"when its data are not ours", "nothing else", Bundle{From: bytesOf(byHand(func(b *bundle.Bundle) {
			b.Data = map[string]any{"custom": map[string]any{"acme": map[string]any{"allow": true}}}
		})), Key: public}},
		{"when it has settings, and is no floor", "only a floor has", Bundle{From: bytesOf(signed(t, private, map[string]string{"settings.yaml": "mode: advise\n"})), Key: public}},
		{"when it is no archive", "no tar.gz", Bundle{From: bytesOf("package custom.acme.x"), Key: public}},
		{"when it is cut short", "no tar.gz", Bundle{From: bytesOf(raw[:len(raw)/2]), Key: public}},
		{"when its end is cut off", "no tar.gz", Bundle{From: bytesOf(raw[:len(raw)-4]), Key: public}},
		{"when there is something behind it", "no tar.gz", Bundle{From: bytesOf(append(slices.Clone(raw), "more"...)), Key: public}},
		{"when another archive is behind it", "behind its end", Bundle{From: bytesOf(append(slices.Clone(raw), with("/x.rego", []byte("package custom.acme.x\n"))...)), Key: public}},
		{"when its signature says that there is none", "verify JWT signature", Bundle{From: bytesOf(token(`{"alg":"none"}`, func([]byte) []byte { return nil })), Key: public}},
		{"when its signature takes the public key for a shared secret", "verify JWT signature", Bundle{From: bytesOf(token(`{"alg":"HS256"}`, func(said []byte) []byte {
			mac := hmac.New(sha256.New, []byte(public))
			mac.Write(said)
			return mac.Sum(nil)
		})), Key: public}},
		{"when its signature brings its own key", "verify JWT signature", Bundle{From: bytesOf(token(`{"alg":"EdDSA","kid":"pinned","jwk":{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}}`, func([]byte) []byte { return make([]byte, 64) })), Key: public}},
		{"when it is too large", "larger than 8 MiB", Bundle{From: bytesOf(make([]byte, maxPacked+1)), Key: public}},
		{"when it unpacks to too much", "32 MiB", Bundle{From: bytesOf(with("/zeros.json", make([]byte, maxUnpacked))), Key: public}},
		{"when it has a link", "no regular file", Bundle{From: bytesOf(pack(t, names, files, func(h *tar.Header) {
			if h.Name == rule {
				h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "/etc/passwd", 0
			}
		})), Key: public}},
		{"when a name leads out", "leads out", Bundle{From: bytesOf(with("/a/../../x.rego", nil)), Key: public}},
		{"when a file is in it twice", "twice", Bundle{From: bytesOf(pack(t, append(slices.Clone(names), rule), files, nil)), Key: public}},
		{"when it is not there", "no such file", Bundle{From: File(filepath.Join(t.TempDir(), "x.tar.gz")), Key: public}},
		{"when it is a directory", "no regular file", Bundle{From: File(t.TempDir()), Key: public}},
		{"when nothing says where it is", "where the bundle is", Bundle{Key: public}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == "when it shadows a built-in rule" {
				tc.b.From = bytesOf(shadow(t, private))
			}
			e, err := Load(t.Context(), acme(tc.b))
			if e != nil || !errors.Is(err, driver.CodeInvalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want invalid with %q", err, tc.want)
			}
			if p := driver.Problems(err); len(p) != 1 || p[0].Hint == "" || strings.Contains(p[0].Hint, "anew") && strings.Contains(tc.name, "rolled back") {
				t.Errorf("the fix is %+v", p)
			}
			if err != nil && strings.Contains(err.Error(), "PRIVATE KEY") {
				t.Errorf("a key is in %v", err)
			}
		})
	}
	many := map[string][]byte{}
	for i := range maxFiles + 1 {
		many[fmt.Sprintf("/%d.rego", i)] = nil
	}
	if _, err := Load(t.Context(), acme(Bundle{From: bytesOf(pack(t, slices.Sorted(maps.Keys(many)), many, nil)), Key: public})); err == nil || !strings.Contains(err.Error(), "files") {
		t.Errorf("too many files: %v", err)
	}
}

// shadow is a bundle with a module of a built-in package, rightly signed.
func shadow(t *testing.T, private string) []byte {
	t.Helper()
	dir := source(t, map[string]string{"x.rego": "package sandboxio.lib.cap\n\nproblem(_, _) := false if false\n", ".manifest": `{"roots": [""]}`}).Dir
	var out bytes.Buffer
	err := opacompile.New().WithOutput(&out).WithAsBundle(true).WithPaths(dir).WithRevision("8").
		WithBundleSigningConfig(bundle.NewSigningConfig(private, algEdDSA, "")).Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names, files := unpack(t, out.Bytes())
	var m bundle.Manifest
	if err := json.Unmarshal(files["/.manifest"], &m); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.NewReader(bytes.NewReader(out.Bytes())).WithSkipBundleVerification(true).Read()
	if err != nil {
		t.Fatal(err, names)
	}
	b.Manifest.Roots = &[]string{"custom/acme"}
	if err := b.GenerateSignature(bundle.NewSigningConfig(private, algEdDSA, ""), "", false); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := bundle.NewWriter(&out).DisableFormat(true).Write(b); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestASourceIsADirectoryOrABundle(t *testing.T) {
	src := oneRule(t, teamRule)
	src.Bundle = &Bundle{}
	if _, err := Load(t.Context(), Options{Sources: []Source{src}}); !errors.Is(err, driver.CodeInvalid) || !strings.Contains(err.Error(), "a directory and a bundle") {
		t.Errorf("got %v", err)
	}
}

func TestABundleIsNotWritten(t *testing.T) {
	private, public := keys(t, algEdDSA)
	rsaKey, _ := keys(t, "RS256")
	good := source(t, teamFiles())
	stale, err := json.Marshal(map[string]any{"waivers": []Waiver{goodWaiver(func(w *Waiver) { w.Expires = "2020-01-01" })}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, want string
		opts       BundleOptions
	}{
		{"without a revision", "0 is no revision", BundleOptions{Set: good, Key: []byte(private)}},
		{"without a key", "no private key", BundleOptions{Set: good, Revision: 1}},
		{"with a public key", "not one private key", BundleOptions{Set: good, Revision: 1, Key: []byte(public)}},
		{"with a key of another kind", "signs no bundles", BundleOptions{Set: good, Revision: 1, Key: []byte(rsaKey)}},
		{"with two keys", "not one private key", BundleOptions{Set: good, Revision: 1, Key: []byte(private + private)}},
		{"of rules that do not compile", "rego_parse_error", BundleOptions{Set: oneRule(t, "deny contains {"), Revision: 1, Key: []byte(private)}},
		{"of a directory without rules", "has no rules", BundleOptions{Set: source(t, map[string]string{"README.md": ""}), Revision: 1, Key: []byte(private)}},
		{"of a waiver without effect", "would have no effect: it expired", BundleOptions{Set: source(t, map[string]string{"waivers.json": string(stale)}), Revision: 1, Key: []byte(private)}},
		{"of settings that nobody knows", "no rule has this parameter", BundleOptions{Set: source(t, map[string]string{"settings.yaml": "params: {max_pidz: 4}\n"}), Revision: 1, Key: []byte(private)}},
		{"of a mode that is none", "no mode", BundleOptions{Set: source(t, map[string]string{"settings.yaml": "mode: off\n"}), Revision: 1, Key: []byte(private)}},
		{"of settings with another field", "unknown field", BundleOptions{Set: source(t, map[string]string{"settings.yaml": "modes: enforce\n"}), Revision: 1, Key: []byte(private)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			err := WriteBundle(t.Context(), &out, tc.opts)
			if !errors.Is(err, driver.CodeInvalid) || !strings.Contains(err.Error(), tc.want) || out.Len() > 0 {
				t.Errorf("got %v with %d bytes, want invalid with %q", err, out.Len(), tc.want)
			}
		})
	}
}

func TestTheFilesOfABundleAreThoseOfTheDirectory(t *testing.T) {
	private, public := keys(t, algES256)
	file := filepath.Join(t.TempDir(), "acme.tar.gz")
	if err := os.WriteFile(file, signed(t, private, teamFiles()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), acme(Bundle{From: File(file), Key: public})); err != nil {
		t.Error(err)
	}
}

// Whatever is put into a signed bundle, what is read is what was signed.
func FuzzOpenBundle(f *testing.F) {
	private, public := keys(f, algEdDSA)
	raw := signed(f, private, teamFiles())
	names, files := unpack(f, raw)
	want, err := openBundle(raw, public)
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		f.Add(name, files[name])
	}
	f.Add("/x.rego", []byte("package custom.acme.x"))
	f.Add("/.signatures.json", []byte(`{"signatures":["a.b.c"]}`))
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		if len(name) > 100 || strings.ContainsRune(name, 0) {
			return
		}
		changed, all := maps.Clone(files), names
		if _, ok := changed[name]; !ok {
			all = append(slices.Clone(names), name)
		}
		changed[name] = body
		got, err := openBundle(pack(t, all, changed, nil), public)
		if err == nil && (!maps.Equal(got.files, want.files) || got.revision != want.revision || len(got.waivers) > 0) {
			t.Errorf("%q makes it %+v", name, got)
		}
	})
}
