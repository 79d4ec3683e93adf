package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

type bundleOptions struct {
	out      string
	key      string
	revision uint64
	verify   string
	least    uint64
}

func (a *app) policyBundleCommand() *cobra.Command {
	var o bundleOptions
	c := &cobra.Command{
		Use:   "bundle [DIR|NAME=DIR]",
		Short: "Sign rules of your own into one file, or verify one",
		Long: `Sign a directory of rules, with its waivers.yaml and settings.yaml, into one file in
OPA's bundle format. The rules are compiled first; a waiver that would have no
effect is an error. The key is a private one in PEM, for ECDSA on P-256 or
Ed25519, in a file that only you can read.

The revision must grow with every bundle: whoever pins the least one that they
take cannot be given an older bundle. With settings.yaml the bundle is a floor,
which SANDBOXIO_POLICY_FLOOR names.

With --verify nothing is written: the bundle is read as the provider would, and
--key is the public key.

` + namesHelp,
		Example: `  openssl genpkey -algorithm ed25519 -out policy.key && openssl pkey -in policy.key -pubout -out policy.pub
  sandboxio policy bundle acme=rules --key policy.key --revision 7 --out acme.tar.gz
  sandboxio policy bundle --verify acme.tar.gz --key policy.pub --min-revision 7`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.verify != "" && (len(args) > 0 || o.out != "" || o.revision != 0):
				return driver.Invalid("verify", "nothing is written with --verify", "leave out the directory, --out and --revision")
			case o.key == "":
				return driver.Invalid("key", "no key is named", "add --key FILE")
			case o.verify != "":
				return a.verifyBundle(cmd.Context(), o)
			case len(args) == 0:
				return driver.Invalid("policy.sources", "no directory is named", "name the directory of the rules, or a bundle with --verify")
			case o.out == "":
				return driver.Invalid("out", "no file is named", "add --out FILE.tar.gz")
			}
			return a.writeBundle(cmd.Context(), args[0], o)
		},
	}
	a.jsonFlag(c)
	c.Flags().StringVar(&o.out, "out", "", "write the bundle to this file")
	c.Flags().StringVar(&o.key, "key", "", "file with the key, in PEM: the private one to sign, the public one to verify")
	c.Flags().Uint64Var(&o.revision, "revision", 0, "its revision: a number greater than that of every bundle before")
	c.Flags().StringVar(&o.verify, "verify", "", "verify this bundle instead")
	c.Flags().Uint64Var(&o.least, "min-revision", 0, "with --verify, the least revision to take")
	return c
}

func (a *app) writeBundle(ctx context.Context, source string, o bundleOptions) error {
	key, err := readKey(o.key, true)
	if err != nil {
		return err
	}
	set := parseSource(source)
	var packed bytes.Buffer
	if err := policy.WriteBundle(ctx, &packed, policy.BundleOptions{Set: set, Revision: o.revision, Key: key}); err != nil {
		return err
	}
	size := packed.Len()
	if err := writeFile(o.out, func(w io.Writer) error { _, err := packed.WriteTo(w); return err }); err != nil {
		return err
	}
	return a.print(map[string]any{"name": set.Name, "revision": o.revision, "file": o.out, "bytes": size}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: the set %s, revision %d, %d bytes, signed\n", o.out, set.Name, o.revision, size)
	})
}

func (a *app) verifyBundle(ctx context.Context, o bundleOptions) error {
	b, err := bundleAt(o.verify, o.key, o.least)
	if err != nil {
		return err
	}
	info, err := policy.VerifyBundle(ctx, b)
	if err != nil {
		return err
	}
	return a.print(info, func(w io.Writer) {
		what := ""
		if info.Floor {
			what = ", for a floor"
		}
		fmt.Fprintf(w, "%s: the set %s, revision %d, files of rules: %d, waivers: %d%s: verified\n", o.verify, info.Name, info.Revision, info.Files, info.Waivers, what)
	})
}

// maxKey is more than a key in PEM takes.
const maxKey = 64 << 10

// isPublicKey reports whether a file holds what verifies, and not what signs.
func isPublicKey(name string) bool {
	text, err := os.ReadFile(name) // a regular file of at most maxKey
	return err == nil && bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN PUBLIC KEY"))
}

// readKey reads a key. A private one must be readable by its owner alone.
func readKey(name string, private bool) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, driver.Invalid("key", err.Error(), "name a file with the key in PEM")
	case !info.Mode().IsRegular() || info.Size() > maxKey:
		return nil, driver.Invalid("key", name+" is no file with a key", "name a file with the key in PEM")
	case private && isPublicKey(name):
		return nil, driver.Invalid("key", name+" is a public key, and a private one signs", "name the private key that it belongs to")
	case private && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, driver.Invalid("key", fmt.Sprintf("others can read or write %s, whose mode is %04o", name, info.Mode().Perm()), "chmod 600 "+name+", and make a new key if others may have read it")
	}
	f, err := openFile("key", name, "name a file with the key in PEM")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxKey))
}
