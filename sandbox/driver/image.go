package driver

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Image is a reference to an image, taken apart.
type Image struct {
	Registry   string // "docker.io" when none was given
	Repository string // "library/python"; "" for an image id
	Tag        string
	Digest     string // "sha256:" and 64 hex digits
	ID         bool   // the reference is an image id, "sha256:…", for places without a registry
}

// Pinned reports whether the reference can mean one content only.
func (i Image) Pinned() bool { return i.Digest != "" }

// The grammar is that of the distribution project's reference package.
var (
	imageDigest = lazily(`^sha256:[0-9a-f]{64}$`)
	imageHex    = lazily(`^[0-9a-f]{64}$`)
	imageTag    = lazily(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	imagePath   = lazily(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
	imageHost   = lazily(`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:.]+\])(?::[0-9]+)?$`)
)

// lazily compiles a pattern when it is first asked for: whoever imports this
// package must not pay for it.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// defaultHub holds the names of one and the same registry, so that a rule about
// it cannot be walked around by writing another.
var defaultHub = map[string]bool{"docker.io": true, "index.docker.io": true, "registry-1.docker.io": true}

// ParseImage takes a reference apart: "[registry/]repository[:tag][@digest]",
// or an image id "sha256:…". Code: invalid, field "image".
func ParseImage(s string) (Image, error) {
	bad := func(problem string) (Image, error) {
		return Image{}, Invalid("image", fmt.Sprintf("%q %s", s, problem), `write "registry/repository@sha256:…", or an image id "sha256:…"`)
	}
	if imageDigest().MatchString(s) {
		return Image{Digest: s, ID: true}, nil
	}
	if s == "" {
		return bad("is empty")
	}
	if strings.Contains(s, "://") {
		return bad("has a scheme")
	}
	rest, digest, pinned := strings.Cut(s, "@")
	if pinned && !imageDigest().MatchString(digest) {
		return bad("has a digest that is not sha256 and 64 lower-case hex digits")
	}
	img := Image{Registry: "docker.io", Digest: digest}
	if i := strings.LastIndex(rest, ":"); i > strings.LastIndex(rest, "/") {
		rest, img.Tag = rest[:i], rest[i+1:]
		if !imageTag().MatchString(img.Tag) {
			return bad("has a malformed tag")
		}
	}
	if host, path, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		if !imageHost().MatchString(host) {
			return bad("has a malformed registry")
		}
		img.Registry, rest = strings.ToLower(host), path
	}
	if imageHex().MatchString(rest) {
		return bad("is an image id without its algorithm")
	}
	if len(rest) > 255 || !imagePath().MatchString(rest) {
		return bad("has a malformed repository")
	}
	if defaultHub[img.Registry] {
		img.Registry = "docker.io"
		if !strings.Contains(rest, "/") {
			rest = "library/" + rest
		}
	}
	img.Repository = rest
	return img, nil
}
