package driver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

var digest = "sha256:" + strings.Repeat("0123456789abcdef", 4)

func TestParseImage(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     driver.Image // zero = refused
	}{
		{"a name alone is the public hub's", "python", driver.Image{Registry: "docker.io", Repository: "library/python"}},
		{"the hub by name means the same", "docker.io/python", driver.Image{Registry: "docker.io", Repository: "library/python"}},
		{"the hub by its other name means the same", "index.docker.io/library/python", driver.Image{Registry: "docker.io", Repository: "library/python"}},
		{"a registry in capitals means the same", "GHCR.io/acme/app", driver.Image{Registry: "ghcr.io", Repository: "acme/app"}},
		{"a tag", "python:3.13-slim", driver.Image{Registry: "docker.io", Repository: "library/python", Tag: "3.13-slim"}},
		{"a digest", "ghcr.io/acme/app@" + digest, driver.Image{Registry: "ghcr.io", Repository: "acme/app", Digest: digest}},
		{"a tag and a digest", "ghcr.io/acme/app:v1@" + digest, driver.Image{Registry: "ghcr.io", Repository: "acme/app", Tag: "v1", Digest: digest}},
		{"a registry with a port", "localhost:5000/app:v1", driver.Image{Registry: "localhost:5000", Repository: "app", Tag: "v1"}},
		{"a registry by IPv6", "[::1]:5000/app", driver.Image{Registry: "[::1]:5000", Repository: "app"}},
		{"a user's repository", "acme/app", driver.Image{Registry: "docker.io", Repository: "acme/app"}},
		{"an image id", digest, driver.Image{Digest: digest, ID: true}},
		{"the memory backend's", "memory:probe", driver.Image{Registry: "docker.io", Repository: "library/memory", Tag: "probe"}},
		{"nothing", "", driver.Image{}},
		{"white space", " python", driver.Image{}},
		{"a scheme", "docker://python", driver.Image{}},
		{"capitals in the repository", "acme/App", driver.Image{}},
		{"capitals that name no registry", "Acme/app", driver.Image{}},
		{"a short digest", "python@sha256:abcd", driver.Image{}},
		{"another algorithm", "python@md5:d41d8cd98f00b204e9800998ecf8427e", driver.Image{}},
		{"a digest in capitals", "python@" + strings.ToUpper(digest), driver.Image{}},
		{"two digests", "python@" + digest + "@" + digest, driver.Image{}},
		{"an image id without its algorithm", digest[7:], driver.Image{}},
		{"an empty tag", "python:", driver.Image{}},
		{"a tag of 129 characters", "python:" + strings.Repeat("a", 129), driver.Image{}},
		{"a path that climbs", "ghcr.io/../app", driver.Image{}},
		{"an empty part", "ghcr.io//app", driver.Image{}},
		{"a registry alone", "ghcr.io/", driver.Image{}},
		{"an option", "-v", driver.Image{}},
		{"a line break", "python\n", driver.Image{}},
		{"a repository of 256 characters", strings.Repeat("a", 256), driver.Image{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := driver.ParseImage(c.in)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if refused := c.want == (driver.Image{}); refused != errors.Is(err, driver.CodeInvalid) {
				t.Errorf("error is %v", err)
			}
			if got.Pinned() != (c.want.Digest != "") {
				t.Errorf("Pinned() = %v", got.Pinned())
			}
		})
	}
}

func FuzzParseImage(f *testing.F) {
	for _, s := range []string{"python", "docker.io/python", "localhost:5000/app:v1@" + digest, digest, "[::1]:5000/a/b", "A/b", "a:b/c:d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		img, err := driver.ParseImage(s)
		if err != nil {
			if img != (driver.Image{}) || !errors.Is(err, driver.CodeInvalid) {
				t.Fatalf("ParseImage(%q) = %+v, %v", s, img, err)
			}
			return
		}
		if img.Pinned() && !strings.HasSuffix(s, img.Digest) {
			t.Fatalf("%q pinned by %q, which it does not hold", s, img.Digest)
		}
		text := img.Digest
		if !img.ID {
			text = img.Registry + "/" + img.Repository
			if img.Tag != "" {
				text += ":" + img.Tag
			}
			if img.Digest != "" {
				text += "@" + img.Digest
			}
		}
		if again, err := driver.ParseImage(text); err != nil || again != img {
			t.Fatalf("%q is %+v, written as %q is %+v, %v", s, img, text, again, err)
		}
	})
}
