package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/pin"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

var _ driver.Examiner = (*Backend)(nil)

// Examine looks for whatever would keep sandboxes from being made on the
// engine, in the order in which to repair. It leaves nothing there: the helper
// that looks at the host's network is removed at once.
func (b *Backend) Examine(ctx context.Context) []driver.Finding {
	cli, err := b.connect(ctx)
	if err != nil {
		return []driver.Finding{broken("engine", err)}
	}
	e := b.endpoint.Load()
	out := []driver.Finding{{Name: "engine", OK: true, Detail: fmt.Sprintf("%s (%s), API %s", e.host, e.source, cli.ClientVersion())}}

	h, err := b.able(ctx, cli)
	if err != nil {
		return append(out, broken("engine's caps", fail(ctx, "doctor", "", err)))
	}
	out = append(out, driver.Finding{Name: "engine's caps", OK: true, Detail: "memory, pids, cpu quota, seccomp; kernel " + h.kernel})

	clock := driver.Finding{Name: "engine's clock", OK: h.skew.Abs() <= maxSkew, Detail: fmt.Sprintf("%v from ours", h.skew.Round(1e6))}
	if !clock.OK {
		clock.Hint = "timedatectl set-ntp true, on both machines"
	}
	out = append(out, clock)

	if v, err := b.findHelper(ctx, cli); err != nil {
		out = append(out, broken("guest volume", fail(ctx, "doctor", "", err)))
	} else {
		out = append(out, driver.Finding{Name: "guest volume", OK: true, Detail: v.volume + ", compared with its digest at each first use"})
	}
	out = append(out, examinePin())
	if image, err := b.gatewayImage(ctx, cli); err != nil {
		out = append(out, broken("gateway image", fail(ctx, "doctor", "", err)))
	} else {
		out = append(out, driver.Finding{Name: "gateway image", OK: true, Detail: image + ", compared with its digest at each first use"})
		out = append(out, transparent(b.survey(ctx, cli, image, h.skew)))
	}
	if image, err := b.keeperImage(ctx, cli); err != nil {
		out = append(out, broken("keeper image", fail(ctx, "doctor", "", err)))
	} else {
		out = append(out, driver.Finding{Name: "keeper image", OK: true, Detail: image})
	}
	if b.opts.Image != "" {
		if _, err := b.inspectImage(ctx, cli, b.opts.Image); err != nil {
			out = append(out, broken("default image", fail(ctx, "doctor", "", err)))
		} else {
			out = append(out, driver.Finding{Name: "default image", OK: true, Detail: b.opts.Image})
		}
	}
	return append(out, examineLeftovers(ctx, cli)...)
}

// survey looks at the host as a creation with an allowlist does, by the same
// helper. Should nobody be left to remove that, a sweep finds it.
func (b *Backend) survey(ctx context.Context, cli *client.Client, image string, skew time.Duration) (boot.Host, error) {
	o := order{spec: driver.Spec{Token: "doctor"}, created: time.Now().Add(skew)}
	o.expires = o.created.Add(lookLimit + startMargin)
	o.startBy = o.expires
	h, err := b.look(ctx, cli, o, &way{set: nonce(), image: image})
	return h, fail(ctx, "doctor", "", err)
}

// transparent is what a look at the host says of mode transparent, the default
// of every allowlist. Whoever asks may make detached sandboxes.
func transparent(h boot.Host, err error) driver.Finding {
	const name = "mode transparent"
	if err == nil {
		err = refuseLax(h, true)
	}
	if err != nil {
		return broken(name, err)
	}
	return driver.Finding{Name: name, OK: true, Detail: "the engine's host takes in nothing that a sandbox sends past its gateway (rp_filter)"}
}

// examinePin tells whether programs of this user that were built from source,
// which know no digest of a release, have one to trust. Others need none, so
// that it is nothing to repair.
func examinePin() driver.Finding {
	f := driver.Finding{Name: "guest pin", OK: true}
	file, err := pin.File("guest")
	if err == nil {
		_, err = pin.Digest("guest", "")
	}
	if err == nil {
		f.Detail = file + ", for programs of this user that were built from source"
		return f
	}
	f.Detail = "none: programs of this user that were built from source are refused, until " + hintSetup
	return f
}

// examineLeftovers looks for containers of ours that a sweep cannot judge.
func examineLeftovers(ctx context.Context, cli *client.Client) []driver.Finding {
	res, err := cli.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", driver.LabelManaged+"=true", driver.LabelRole+"="+driver.RoleSandbox)})
	if err != nil {
		return []driver.Finding{broken("containers", fail(ctx, "doctor", "", err))}
	}
	var odd []string
	for _, c := range res.Items {
		entrypoint, _, _ := strings.Cut(c.Command, " ")
		if !managed(c.Labels, entrypoint, c.Mounts) {
			odd = append(odd, c.ID[:min(12, len(c.ID))])
		}
	}
	f := driver.Finding{Name: "containers", OK: len(odd) == 0, Detail: fmt.Sprintf("%d sandboxes", len(res.Items)-len(odd))}
	if !f.OK {
		f.Detail += fmt.Sprintf("; %d carry our labels without our guest, and are never swept: %s", len(odd), strings.Join(odd, " "))
		f.Hint = "docker inspect " + odd[0] + ", then docker rm -f what is not wanted"
	}
	return []driver.Finding{f}
}

// broken is what failed. Who reads it has the doctor there already, so that a
// hint to call one is replaced.
func broken(name string, err error) driver.Finding {
	f := driver.Finding{Name: name, Detail: err.Error()}
	if e, ok := errors.AsType[*driver.Error](err); ok {
		f.Hint = e.Hint
		if e.Err != nil {
			f.Detail = e.Err.Error()
		}
	}
	if f.Hint == "" || f.Hint == hintDoctor {
		f.Hint = hintStart
		if name != "engine" {
			f.Hint = "look at the engine's own log, as with journalctl -u docker"
		}
	}
	return f
}
