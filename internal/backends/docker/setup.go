package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// labelContent is the digest of the binary in a helper image.
const labelContent = driver.LabelPrefix + "content"

// SetupOptions say which binaries an engine is given.
type SetupOptions struct {
	Guest    string       // path of sandboxio-guest
	Gateway  string       // path of sandboxio-gateway, for allowlists; "" leaves it out
	CLI      string       // path of a static linux sandboxio, for reaper schedules; "" leaves them out
	Progress func(string) // told of each step; may be nil
}

// SetupReport is what an engine has after Setup.
type SetupReport struct {
	Guest   string   // digest of the guest
	Volume  string   // that holds it
	Gateway string   // image of the gateway, for allowlists; "" without one
	Keeper  string   // image for reaper schedules; "" without a CLI
	Changed []string // what this call made; empty when all was there
}

// Setup gives an engine what sandboxes need: a volume with the guest, made
// from the release's own binary without builder or registry, and images for
// allowlists and reaper schedules. It pins their digests for the user who calls
// it, in his configuration directory: programs that were built from source use
// nothing else. It can be repeated; what is there and right is left alone.
func Setup(ctx context.Context, opts Options, so SetupOptions) (SetupReport, error) {
	b, err := Open(ctx, opts)
	if err != nil {
		return SetupReport{}, err
	}
	defer b.Close()
	rep, err := b.setup(ctx, so)
	return rep, fail(ctx, "setup", "", err)
}

func (b *Backend) setup(ctx context.Context, so SetupOptions) (SetupReport, error) {
	var rep SetupReport
	say := func(format string, args ...any) {
		if so.Progress != nil {
			so.Progress(fmt.Sprintf(format, args...))
		}
	}
	binary, err := readBinary("guest", so.Guest)
	if err != nil {
		return rep, err
	}
	if guest.ReleaseDigest != "" && guest.ReleaseDigest != binary.digest {
		return rep, driver.Invalid("guest", fmt.Sprintf("%s has %s, this release's guest has %s", so.Guest, binary.digest, guest.ReleaseDigest), "use the guest of the same release")
	}
	var keeper, gate *binaryFile
	if so.Gateway != "" {
		if gate, err = readBinary("gateway", so.Gateway); err != nil {
			return rep, err
		}
		if boot.ReleaseDigest != "" && boot.ReleaseDigest != gate.digest {
			return rep, driver.Invalid("gateway", fmt.Sprintf("%s has %s, this release's gateway has %s", so.Gateway, gate.digest, boot.ReleaseDigest), "use the gateway of the same release")
		}
	}
	if so.CLI != "" {
		if keeper, err = readBinary("cli", so.CLI); err != nil {
			return rep, err
		}
	}
	cli, err := b.connect(ctx)
	if err != nil {
		return rep, err
	}
	if _, err := b.able(ctx, cli); err != nil {
		return rep, err
	}
	info, err := cli.Info(ctx, client.InfoOptions{})
	if err != nil {
		return rep, err
	}
	for _, f := range []*binaryFile{binary, gate, keeper} {
		if f != nil && f.machine != info.Info.Architecture {
			return rep, driver.Invalid(f.field, fmt.Sprintf("%s is for %s, the engine's host is %s", f.path, f.machine, info.Info.Architecture), "use the release's binary for that architecture")
		}
	}

	rep.Guest, rep.Volume = binary.digest, volumeName(binary.digest)
	say("guest %s", binary.digest)
	image, made, err := importBinary(ctx, cli, binary, guestTag(binary.digest), guest.Binary, "guest", binary.digest)
	if err != nil {
		return rep, err
	}
	if made {
		rep.Changed = append(rep.Changed, "image "+guestTag(binary.digest))
		say("image %s made", guestTag(binary.digest))
	}
	made, err = b.fillVolume(ctx, cli, image, &helper{volume: rep.Volume, digest: rep.Guest})
	if err != nil {
		return rep, err
	}
	if made {
		rep.Changed = append(rep.Changed, "volume "+rep.Volume)
	}
	say("volume %s holds the guest, read back and compared", rep.Volume)

	if gate != nil {
		rep.Gateway = gatewayTag(gate.digest)
		_, made, err := importBinary(ctx, cli, gate, rep.Gateway, boot.Binary, "gateway", binary.digest)
		if err != nil {
			return rep, err
		}
		if made {
			rep.Changed = append(rep.Changed, "image "+rep.Gateway)
		}
		if err := rep.pin("gateway", boot.WritePin, gate.digest); err != nil {
			return rep, err
		}
		say("image %s is there for allowlists", rep.Gateway)
	}
	if keeper != nil {
		rep.Keeper = keeperTag(binary.digest)
		_, made, err := importBinary(ctx, cli, keeper, rep.Keeper, keeperBinary, "keeper", binary.digest)
		if err != nil {
			return rep, err
		}
		if made {
			rep.Changed = append(rep.Changed, "image "+rep.Keeper)
		}
		say("image %s is there for reaper schedules", rep.Keeper)
	}
	return rep, rep.pin("guest", guest.WritePin, binary.digest)
}

// pin lets programs of this user that were built from source trust a binary.
func (r *SetupReport) pin(name string, write func(string) (bool, error), digest string) error {
	changed, err := write(digest)
	if changed {
		r.Changed = append(r.Changed, name+" pin of this user")
	}
	return err
}

func short(digest string) string     { return strings.TrimPrefix(digest, "sha256:")[:12] }
func guestTag(digest string) string  { return "sandboxio-helper:" + short(digest) }
func keeperTag(digest string) string { return "sandboxio-keeper:" + short(digest) }

func gatewayTag(digest string) string { return "sandboxio-gateway:" + short(digest) }

type binaryFile struct {
	field, path, digest, machine string
	content                      []byte
}

// readBinary reads a static Linux program.
func readBinary(field, name string) (*binaryFile, error) {
	bad := func(problem string) error {
		return driver.Invalid(field, fmt.Sprintf("%q %s", name, problem), "make build, or use the binaries of a release")
	}
	if name == "" {
		return nil, bad("is no path")
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, bad("cannot be read: " + err.Error())
	}
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, bad("is no Linux program")
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return nil, bad("is not statically linked: in an image from scratch it would not start")
		}
	}
	sum := sha256.Sum256(content)
	b := &binaryFile{field: field, path: name, digest: "sha256:" + hex.EncodeToString(sum[:]), content: content}
	switch f.Machine {
	case elf.EM_X86_64:
		b.machine = "x86_64"
	case elf.EM_AARCH64:
		b.machine = "aarch64"
	default:
		b.machine = strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_"))
	}
	return b, nil
}

// importBinary makes an image from scratch with one program in it, unless the
// tag has that very program already.
func importBinary(ctx context.Context, cli *client.Client, f *binaryFile, tag, at, kind, guestDigest string) (id string, made bool, err error) {
	want := map[string]string{driver.LabelManaged: "true", driver.LabelRole: driver.RoleHelper, labelHelper: kind, labelContent: f.digest}
	have, err := cli.ImageInspect(ctx, tag)
	if err == nil && have.Config != nil && driver.HasLabels(have.Config.Labels, want) {
		return have.ID, false, nil
	}
	if err != nil && !absent(err) {
		return "", false, err
	}
	archive, err := tarOf(f.content, at)
	if err != nil {
		return "", false, err
	}
	changes := []string{`ENTRYPOINT ["` + at + `"]`, "USER 0:0", "WORKDIR /"}
	for k, v := range want {
		changes = append(changes, "LABEL "+k+"="+v)
	}
	res, err := cli.ImageImport(ctx, client.ImageImportSource{Source: archive, SourceName: "-"}, tag, client.ImageImportOptions{Changes: changes, Message: "sandboxio " + kind + " for guest " + guestDigest})
	if err != nil {
		return "", false, err
	}
	_, err = io.Copy(io.Discard, res)
	if err = errors.Join(err, res.Close()); err != nil {
		return "", false, err
	}
	got, err := cli.ImageInspect(ctx, tag)
	if have.ID != "" && have.ID != got.ID && have.Config != nil && have.Config.Labels[labelHelper] == kind {
		// The tag has moved on from an image of ours. One that a keeper still
		// runs stays, and goes at a later setup.
		_, _ = cli.ImageRemove(ctx, have.ID, client.ImageRemoveOptions{})
	}
	return got.ID, true, err
}

// tarOf packs one executable with the directories above it.
func tarOf(content []byte, at string) (io.Reader, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if dir := strings.TrimPrefix(path.Dir(at), "/"); dir != "" {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return nil, err
		}
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(at, "/"), Mode: 0o755, Size: int64(len(content))}); err != nil {
		return nil, err
	}
	_, err := w.Write(content)
	return &buf, errors.Join(err, w.Close())
}

// fillVolume makes the helper volume by creating, and never starting, a
// container of the helper image with the empty volume over the guest's
// directory: the engine copies what the image has there. A volume that holds
// anything else is made anew, unless something uses it.
func (b *Backend) fillVolume(ctx context.Context, cli *client.Client, image string, h *helper) (made bool, err error) {
	for range 2 {
		_, err := cli.VolumeInspect(ctx, h.volume, client.VolumeInspectOptions{})
		switch {
		case absent(err):
			made = true
			labels := map[string]string{driver.LabelManaged: "true", driver.LabelRole: driver.RoleVolume, labelHelper: "guest"}
			if _, err := cli.VolumeCreate(ctx, client.VolumeCreateOptions{Name: h.volume, Driver: "local", Labels: labels}); err != nil {
				return made, err
			}
		case err != nil:
			return made, err
		}
		err = b.readBack(ctx, cli, image, h)
		if err == nil || made || driver.CodeOf(err) != driver.CodeConflict {
			return made, err
		}
		if _, rerr := cli.VolumeRemove(ctx, h.volume, client.VolumeRemoveOptions{}); rerr != nil {
			return made, errors.Join(err, fail(ctx, "setup", "", rerr))
		}
	}
	return made, err
}

func (b *Backend) readBack(ctx context.Context, cli *client.Client, image string, h *helper) (err error) {
	id, _, err := b.createContainer(ctx, cli, "setup", client.ContainerCreateOptions{
		Name:   namePrefix + "helper-" + nonce(),
		Config: &container.Config{Image: image, Labels: map[string]string{driver.LabelManaged: "true", driver.LabelRole: driver.RoleHelper}},
		HostConfig: &container.HostConfig{NetworkMode: "none", ReadonlyRootfs: true,
			Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: h.volume, Target: guest.Dir}}},
	})
	if err != nil {
		return err
	}
	defer func() {
		if rerr := b.remove(context.WithoutCancel(ctx), cli, id); rerr != nil {
			err = errors.Join(err, leaked("setup", id, rerr))
		}
	}()
	return readHelper(ctx, cli, h, id)
}
