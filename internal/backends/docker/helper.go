package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// maxGuest bounds what is read back as the guest's binary.
const maxGuest = 64 << 20

// helper is the volume that holds the guest.
type helper struct {
	volume   string // its name, made of the digest
	digest   string // "sha256:…"
	identity string // changes when somebody makes the volume anew
}

// helperCheck remembers which volume was read in full.
type helperCheck struct {
	mu       sync.Mutex
	verified string // identity
}

func volumeName(digest string) string { return volumePrefix + strings.TrimPrefix(digest, "sha256:") }

// findHelper asks for the volume of this release's guest. The engine would
// create a missing one, empty, so it has to be there beforehand.
func (b *Backend) findHelper(ctx context.Context, cli *client.Client) (*helper, error) {
	digest, err := guest.Digest()
	if err != nil {
		return nil, err
	}
	h := &helper{volume: volumeName(digest), digest: digest}
	res, err := cli.VolumeInspect(ctx, h.volume, client.VolumeInspectOptions{})
	if absent(err) {
		return nil, &driver.Error{Code: driver.CodeNotFound, Field: "helper", Hint: hintSetup, Err: fmt.Errorf("the engine has no volume %s with the guest", h.volume)}
	}
	if err != nil {
		return nil, err
	}
	v := res.Volume
	// A volume with options is a mount of something else under our name.
	if v.Driver != "local" || len(v.Options) > 0 {
		return nil, tampered(h.volume, fmt.Sprintf("it is a %q volume with %d options", v.Driver, len(v.Options)))
	}
	h.identity = v.Name + "@" + v.CreatedAt + "@" + v.Mountpoint
	return h, nil
}

func tampered(volume, what string) error {
	return &driver.Error{Code: driver.CodeConflict, Field: "helper", Hint: "docker volume rm " + volume + ", then " + hintSetup,
		Err: fmt.Errorf("volume %s does not hold this release's guest: %s", volume, what)}
}

// verifyHelper reads the guest back out of a created container, as it will be
// mounted, and compares it with the digest this program expects. A volume is
// read once; after that its identity, which findHelper asks for at every
// create, stands for it: whoever can write into a volume of the engine is
// root on its host already.
func (b *Backend) verifyHelper(ctx context.Context, cli *client.Client, h *helper, container string) error {
	b.helper.mu.Lock()
	defer b.helper.mu.Unlock()
	if b.helper.verified == h.identity {
		return nil
	}
	if err := readHelper(ctx, cli, h, container); err != nil {
		return err
	}
	b.helper.verified = h.identity
	return nil
}

// readHelper compares the guest in a created container with its digest.
func readHelper(ctx context.Context, cli *client.Client, h *helper, container string) error {
	res, err := cli.CopyFromContainer(ctx, container, client.CopyFromContainerOptions{SourcePath: guest.Binary})
	if absent(err) {
		return tampered(h.volume, "it holds no "+guest.Binary)
	}
	if err != nil {
		return err
	}
	defer res.Content.Close()
	content := &arriving{r: res.Content}
	digest, err := digestInTar(content)
	if content.err != nil {
		return during("reading the guest back", content.err)
	}
	if err != nil {
		return tampered(h.volume, err.Error())
	}
	if digest != h.digest {
		return tampered(h.volume, fmt.Sprintf("it has %s, expected %s", digest, h.digest))
	}
	return nil
}

// arriving remembers why what was to be read did not arrive in full, which says
// nothing of what it is.
type arriving struct {
	r   io.Reader
	err error
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if err != nil && err != io.EOF {
		a.err = err
	}
	return n, err
}

// digestInTar hashes the only file of an archive.
func digestInTar(r io.Reader) (string, error) {
	t := tar.NewReader(r)
	hdr, err := t.Next()
	if err != nil {
		return "", fmt.Errorf("unreadable archive: %w", err)
	}
	if hdr.Typeflag != tar.TypeReg || hdr.Size > maxGuest {
		return "", fmt.Errorf("%s is no regular file of a sensible size", hdr.Name)
	}
	if hdr.Mode&0o111 == 0 {
		return "", fmt.Errorf("%s is not executable", hdr.Name)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(t, maxGuest)); err != nil {
		return "", err
	}
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return "", errors.New("more than one file in the archive")
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
