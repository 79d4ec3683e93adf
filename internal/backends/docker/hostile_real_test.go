//go:build dockertest

package docker

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// imported makes an image out of the test image's files, some more, and a
// configuration, and removes it at the end.
func imported(t testing.TB, b *Backend, base string, extra func(*tar.Writer) error, changes ...string) string {
	t.Helper()
	cli := raw(t, b)
	files := io.NopCloser(strings.NewReader(""))
	if base != "" {
		c, err := cli.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: looseConfig(base, "true")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := b.remove(cleanup(t), cli, c.ID); err != nil {
				t.Error(err)
			}
		}()
		if files, err = cli.ContainerExport(t.Context(), c.ID, client.ContainerExportOptions{}); err != nil {
			t.Fatal(err)
		}
		defer files.Close()
	}
	r, w := io.Pipe()
	defer r.Close()
	go func() {
		_ = w.CloseWithError(func() error {
			tw := tar.NewWriter(w)
			for tr := tar.NewReader(files); ; {
				h, err := tr.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return err
				}
				if strings.HasPrefix(path.Clean(h.Name), "dev/") {
					continue
				}
				if err := tw.WriteHeader(h); err != nil {
					return err
				}
				if _, err := io.Copy(tw, tr); err != nil {
					return err
				}
			}
			if extra != nil {
				if err := extra(tw); err != nil {
					return err
				}
			}
			return tw.Close()
		}())
	}()
	res, err := cli.ImageImport(t.Context(), client.ImageImportSource{Source: r, SourceName: "-"}, "", client.ImageImportOptions{Changes: changes})
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(res)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.LastIndex(said, []byte("sha256:"))
	if i < 0 || len(said) < i+71 {
		t.Fatalf("import said %s", said)
	}
	id := string(said[i : i+71])
	t.Cleanup(func() {
		if _, err := cli.ImageRemove(cleanup(t), id, client.ImageRemoveOptions{Force: true}); err != nil && !absent(err) {
			t.Error(err)
		}
	})
	return id
}

func file(tw *tar.Writer, name, content string, mode int64) error {
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := io.WriteString(tw, content)
	return err
}

func TestRealAHostileImageIsNeutralised(t *testing.T) {
	b, base := engine(t)
	const evil = "#!/bin/sh\necho evil ran > /work/evil\nexec sleep 1000\n"
	image := imported(t, b, base, func(tw *tar.Writer) error {
		return errors.Join(file(tw, ".sandboxio/sandboxio-guest", evil, 0o755), file(tw, "evil", evil, 0o755), file(tw, "data/seed", "seed", 0o666))
	},
		`HEALTHCHECK --interval=1s --timeout=1s CMD /evil`,
		`VOLUME ["/data", "/var/lib/deep", "/work"]`,
		`USER 1234`,
		`ENTRYPOINT ["/evil"]`,
		`CMD ["more"]`,
		`WORKDIR /data`,
		`ENV GODEBUG=inittrace=1 GOTRACEBACK=crash LD_PRELOAD=/evil.so KEPT=yes SANDBOXIO_GUEST=x`,
		`EXPOSE 80`,
		`LABEL com.example.harmless=1`,
	)
	volumes := volumeNames(t, b)
	spec := realSpec(t, image)
	spec.Resources.DiskMiB = 32
	sb := create(t, b, spec)

	out := sh(t, sb, `
for i in 1 2 3; do sleep 1; done
ls /work; cat /proc/1/cmdline | tr '\0' ' '; echo
for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline; echo; done
echo "env:"; env
for d in /data /var/lib/deep; do dd if=/dev/zero of=$d/fill bs=64k 2>&1 | grep -o '[N]o space left on device'; done
du -sk /data /var/lib/deep /work /tmp /run /dev/shm | awk '{s+=$1} END {print "sum", s}'
ls /data
`)
	if strings.Contains(out, "evil") {
		t.Errorf("something of the image's ran:\n%s", out)
	}
	if !strings.Contains(out, guest.Binary+" init") {
		t.Errorf("PID 1 is not the guest:\n%s", out)
	}
	if strings.Count(out, "No space left on device") != 2 || strings.Contains(out, "seed") {
		t.Errorf("a declared volume is not a capped tmpfs:\n%s", out)
	}
	for _, gone := range []string{"GODEBUG", "GOTRACEBACK", "LD_PRELOAD", "SANDBOXIO_GUEST"} {
		if strings.Contains(out, gone) {
			t.Errorf("%s of the image is there:\n%s", gone, out)
		}
	}
	if !strings.Contains(out, "KEPT=yes") {
		t.Errorf("the image's own env is gone:\n%s", out)
	}
	res, err := raw(t, b).ContainerInspect(t.Context(), sb.Status().ID, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := res.Container; c.State.Health != nil || c.Config.StopSignal != "SIGTERM" || c.Config.User != "0:0" || c.Config.WorkingDir != "/" {
		t.Errorf("health %v, stop signal %s, user %s, directory %s", c.State.Health, c.Config.StopSignal, c.Config.User, c.Config.WorkingDir)
	}
	if err := sb.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := volumeNames(t, b); strings.Join(now, " ") != strings.Join(volumes, " ") {
		t.Errorf("volumes before %v, after %v", volumes, now)
	}
}

func TestRealAnImageWithOurLabelsIsRefused(t *testing.T) {
	b, _ := engine(t)
	image := imported(t, b, "", func(tw *tar.Writer) error { return file(tw, "x", "x", 0o755) },
		`LABEL sandboxio.managed=true sandboxio.role=sandbox`)
	_, err := b.Create(t.Context(), realSpec(t, image))
	if !errors.Is(err, driver.CodeInvalid) || !strings.Contains(err.Error(), "sandboxio.") {
		t.Errorf("%v", err)
	}
}

func TestRealAMountpointThatIsALinkDoesNotMisleadTheGuest(t *testing.T) {
	b, _ := engine(t)
	for _, target := range []string{"/tmp", "/work", "/evil", "../../../../etc", "/proc/1"} {
		image := imported(t, b, "", func(tw *tar.Writer) error {
			return errors.Join(
				tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "evil/", Mode: 0o755}),
				file(tw, "evil/sandboxio-guest", "#!/evil/sh\n", 0o755),
				tw.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: ".sandboxio", Linkname: target, Mode: 0o777}))
		}, `VOLUME ["/evil"]`)
		sb, err := b.Create(t.Context(), realSpec(t, image))
		if err != nil {
			t.Logf("%s: %v", target, err)
			continue // nothing was made; the engine's cleanup check holds it
		}
		// Handed over: then it is the guest, and its mount is where it must be.
		t.Errorf("%s: it was handed over", target)
		_ = sb.Kill(t.Context())
	}
}

func TestRealAMissingImageNamesTheFix(t *testing.T) {
	b, _ := engine(t)
	for _, ref := range []string{"registry.invalid/nobody/nothing@sha256:" + strings.Repeat("0", 64), "sha256:" + strings.Repeat("0", 64)} {
		_, err := b.Create(t.Context(), realSpec(t, ref))
		if !errors.Is(err, driver.CodeNotFound) || !strings.Contains(err.Error(), "docker ") {
			t.Errorf("%v", err)
		}
	}
}

func volumeNames(t testing.TB, b *Backend) []string {
	t.Helper()
	res, err := raw(t, b).VolumeList(t.Context(), client.VolumeListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, v := range res.Items {
		out = append(out, v.Name)
	}
	slices.Sort(out)
	return out
}

// foreignGuest makes the test's program trust another guest, so that the
// volume the other tests use is left alone.
func foreignGuest(t testing.TB) (volume string) {
	t.Helper()
	digest := digestOf([]byte(t.Name() + t.TempDir()))
	if _, err := guest.WritePin(digest); err != nil {
		t.Fatal(err)
	}
	return volumeName(digest)
}

func TestRealAMissingHelperVolumeNamesTheFix(t *testing.T) {
	b, image := engine(t)
	foreignGuest(t)
	_, err := b.Create(t.Context(), realSpec(t, image))
	if !errors.Is(err, driver.CodeNotFound) || !strings.Contains(err.Error(), "sandboxio setup docker") {
		t.Errorf("%v", err)
	}
}

func TestRealATamperedHelperVolumeIsNeverUsed(t *testing.T) {
	b, image := engine(t)
	for name, content := range map[string]func(*tar.Writer) error{
		"another program": func(tw *tar.Writer) error { return file(tw, "sandboxio-guest", "#!/bin/sh\nsleep 100\n", 0o755) },
		"nothing":         func(*tar.Writer) error { return nil },
		"a link": func(tw *tar.Writer) error {
			return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "sandboxio-guest", Linkname: "/bin/sh"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			volume := foreignGuest(t)
			cli := raw(t, b)
			// Filled beforehand, as an attacker would: by a container that mounts it.
			if _, err := cli.VolumeCreate(t.Context(), client.VolumeCreateOptions{Name: volume}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if _, err := cli.VolumeRemove(cleanup(t), volume, client.VolumeRemoveOptions{Force: true}); err != nil {
					t.Error(err)
				}
			})
			c, err := cli.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: looseConfig(image, "true"),
				HostConfig: &container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: "/v"}}}})
			if err != nil {
				t.Fatal(err)
			}
			var buf bytes.Buffer
			tw := tar.NewWriter(&buf)
			if err := errors.Join(content(tw), tw.Close()); err != nil {
				t.Fatal(err)
			}
			_, err = cli.CopyToContainer(t.Context(), c.ID, client.CopyToContainerOptions{DestinationPath: "/v", Content: &buf})
			if err = errors.Join(err, b.remove(t.Context(), cli, c.ID)); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time as well
				if _, err = b.Create(t.Context(), realSpec(t, image)); !errors.Is(err, driver.CodeConflict) || !strings.Contains(err.Error(), "docker volume rm "+volume) {
					t.Errorf("%v", err)
				}
			}
		})
	}
}
