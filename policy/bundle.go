package policy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	slashpath "path"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Bundle is a set in one signed file, in OPA's bundle format: what "sandboxio
// policy bundle" makes, or "opa build -b" with a signing key. Its manifest has
// one root, "custom/<name of the set>", and a revision that is a number.
// Waivers are data.custom.<name>.waivers.
type Bundle struct {
	From Opener

	// Key is the public key that must have signed it, in PEM: ECDSA on P-256
	// (ES256) or Ed25519 (EdDSA). An unsigned bundle is never read.
	Key string

	// MinRevision refuses older bundles of the same key, which somebody might
	// put back to undo a rule. Zero takes any.
	MinRevision uint64

	// Digest names the very file, as "sha256:…"; "" = any that the key signed.
	Digest string
}

// Opener gives a bundle's bytes, which are trusted for nothing until their
// signature is verified. Its String says where they are from, for errors.
type Opener interface {
	Open(ctx context.Context) (io.ReadCloser, error)
	fmt.Stringer
}

// File is a bundle in a file.
type File string

// Open opens the file.
func (f File) Open(context.Context) (io.ReadCloser, error) {
	if err := regular(os.Stat(string(f))); err != nil {
		return nil, err
	}
	return os.Open(string(f))
}

// regular refuses what could be read for ever, as a pipe, before it is opened.
func regular(info fs.FileInfo, err error) error {
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	return err
}

func (f File) String() string { return string(f) }

// Limits of a bundle.
const (
	maxPacked   = 8 << 20
	maxUnpacked = 32 << 20
)

// read verifies the bundle and gives what it holds.
func (b Bundle) read(ctx context.Context) (*contents, error) {
	if b.From == nil || b.From.String() == "" {
		return nil, remedy{errors.New("nothing says where the bundle is"), "name the file of the bundle"}
	}
	r, err := b.From.Open(ctx)
	if err != nil {
		return nil, remedy{err, "name the file of the bundle"}
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxPacked+1))
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if len(raw) > maxPacked {
		return nil, fmt.Errorf("it is larger than %d MiB", maxPacked>>20)
	}
	sum := sha256.Sum256(raw)
	if digest := "sha256:" + hex.EncodeToString(sum[:]); b.Digest != "" && b.Digest != digest {
		return nil, remedy{fmt.Errorf("its digest is %s and not %s, which is asked for", digest, b.Digest), "get the file that is asked for, or name this one's digest once you know why it is another"}
	}
	c, err := openBundle(raw, b.Key)
	if err == nil && c.revision < b.MinRevision {
		return nil, remedy{fmt.Errorf("it is a rollback: its revision is %d, and %d is the least", c.revision, b.MinRevision), "get the newest bundle; nothing of this one is used"}
	}
	return c, err
}

// openBundle verifies the signature and takes the bundle apart.
func openBundle(raw []byte, key string) (*contents, error) {
	public, alg, err := parsePublic(key)
	if err != nil {
		return nil, remedy{fmt.Errorf("the key to verify it: %w", err), "name the public key, as openssl pkey -pubout writes it"}
	}
	if err := inspect(raw); err != nil {
		return nil, err
	}
	const id = "pinned" // whatever key the bundle names itself
	verify := bundle.NewVerificationConfig(map[string]*bundle.KeyConfig{id: {Key: public, Algorithm: alg}}, id, "", nil)
	b, err := bundle.NewReader(bytes.NewReader(raw)).
		WithBundleVerificationConfig(verify).
		WithSizeLimitBytes(maxUnpacked + 1).
		WithRegoVersion(ast.RegoV1).
		WithCapabilities(capabilities()).
		Read()
	if err != nil {
		return nil, remedy{err, "get it anew from whoever signs it, and the public key that goes with it; nothing of it is used as it is"}
	}
	c := &contents{files: map[string]string{}}
	if b.Manifest.Roots == nil || len(*b.Manifest.Roots) != 1 {
		return nil, errors.New(`its manifest has not one root; write {"roots": ["custom/<name of the set>"]} into .manifest`)
	}
	name, ok := strings.CutPrefix((*b.Manifest.Roots)[0], "custom/")
	if !ok || !sourceName.MatchString(name) {
		return nil, fmt.Errorf(`its root is %q; rules of a set live below "custom/<name of the set>" and nowhere else`, (*b.Manifest.Roots)[0])
	}
	c.name = name
	if c.revision, err = strconv.ParseUint(b.Manifest.Revision, 10, 64); err != nil || c.revision == 0 {
		return nil, fmt.Errorf("its revision is %q; it must be a number from 1 up, so that an older bundle can be told from a newer one", b.Manifest.Revision)
	}
	for _, m := range b.Modules {
		if file := strings.TrimPrefix(m.Path, "/"); !strings.HasSuffix(file, "_test.rego") {
			c.files[file] = string(m.Raw)
		}
	}
	return c, c.setData(b.Data)
}

// setData reads data.custom.<name>, the only data there may be.
func (c *contents) setData(data map[string]any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var doc struct {
		Custom map[string]struct {
			Waivers  []Waiver  `json:"waivers"`
			Settings *settings `json:"settings"`
		} `json:"custom"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return fmt.Errorf("its data, which are data.custom.%s.{waivers, settings} and nothing else: %w", c.name, err)
	}
	own, ok := doc.Custom[c.name]
	if len(doc.Custom) > 1 || len(doc.Custom) == 1 && !ok {
		return fmt.Errorf("it has data outside of data.custom.%s", c.name)
	}
	c.waivers, c.settings = own.Waivers, own.Settings
	return nil
}

// inspect bounds what is unpacked, before anything else reads it, and refuses
// what a set has no use for: links, two files of one name, patches, WebAssembly
// and query plans.
func inspect(raw []byte) error {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("it is no tar.gz: %w", err)
	}
	all := io.LimitReader(z, maxUnpacked+maxFiles*1024)
	t := tar.NewReader(all)
	seen, total := map[string]bool{}, int64(0)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nothingLeft(all)
		}
		if err != nil {
			return fmt.Errorf("it is no tar.gz of at most %d MiB: %w", maxUnpacked>>20, err)
		}
		name := slashpath.Clean("/" + h.Name)
		if h.Typeflag == tar.TypeDir {
			continue
		}
		total += h.Size
		switch base := slashpath.Base(name); {
		case h.Typeflag != tar.TypeReg:
			return fmt.Errorf("%s is no regular file", h.Name)
		case strings.Contains("/"+h.Name+"/", "/../"):
			return fmt.Errorf("%s leads out of the bundle", h.Name)
		case seen[name]:
			return fmt.Errorf("%s is in it twice", h.Name)
		case base == "patch.json":
			return errors.New("it is a delta bundle, which carries no signature")
		case strings.HasSuffix(base, ".wasm"), base == "plan.json", base == "plan.pb":
			return fmt.Errorf("%s: a set is made of Rego", h.Name)
		case total > maxUnpacked || len(seen) == maxFiles:
			return fmt.Errorf("it has more than %d files or %d MiB", maxFiles, maxUnpacked>>20)
		}
		seen[name] = true
	}
}

// nothingLeft reads to the end, so that an archive that was cut short, or has
// something behind its end, is none.
func nothingLeft(r io.Reader) error {
	rest, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("it is no tar.gz: after its last file: %w", err)
	}
	if len(bytes.Trim(rest, "\x00")) > 0 {
		return errors.New("there is something behind its end")
	}
	return nil
}

// remedy is a fault with its fix, where making the bundle anew is none.
type remedy struct {
	error
	fix string
}

func (r remedy) Unwrap() error { return r.error }

// bundleError says which bundle could not be used, and that nothing of it is.
func bundleError(field, from string, err error) error {
	fix := "make it anew with: sandboxio policy bundle; nothing of it is used as it is"
	if r, ok := errors.AsType[remedy](err); ok {
		fix = r.fix
	}
	return &driver.Error{Code: driver.CodeInvalid, Op: "load policy", Field: field, Err: fmt.Errorf("the bundle %s: %w", from, err), Hint: fix}
}
