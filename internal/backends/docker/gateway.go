package docker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	// gatewayPIDs has room for the threads of a gateway and of its relays, of
	// which there are most, 24, where a process may have few files open.
	gatewayPIDs = 512

	// gatewayMemory has room for ten thousand connections at 32 KiB each. One
	// that reaches it is killed, and there is no network then.
	gatewayMemory = 512 << 20
	gatewayHeap   = "GOMEMLIMIT=400MiB"

	// labelSet is the same on a sandbox, its gateway and their networks.
	labelSet = driver.LabelPrefix + "set"

	// labelPool tells others where networks of ours may come to be.
	labelPool = driver.LabelPrefix + "address_pool"

	// labelStartBy tells a sweep until when a creation may be under way.
	labelStartBy = driver.LabelPrefix + "start_by" // unix seconds
)

// gatewayCaps are what a gateway begins with. It has none of them once it says
// that it is ready.
var gatewayCaps = []string{"NET_ADMIN", "NET_BIND_SERVICE", "SETGID", "SETUID"}

// gatewayCheck remembers which image was read in full.
type gatewayCheck struct {
	mu       sync.Mutex
	verified string // id of the image
}

// gatewayImage finds the image that setup made of this release's gateway.
func (b *Backend) gatewayImage(ctx context.Context, cli *client.Client) (string, error) {
	digest, err := boot.Digest()
	if err != nil {
		return "", err
	}
	res, err := cli.ImageInspect(ctx, gatewayTag(digest))
	if absent(err) {
		return "", &driver.Error{Code: driver.CodeNotFound, Field: "network", Hint: hintSetup, Err: fmt.Errorf("the engine has no image %s, and an allowlist needs its gateway", gatewayTag(digest))}
	}
	if err != nil {
		return "", err
	}
	return res.ID, nil
}

// verifyGateway reads the gateway back out of a created container, and compares
// it with the digest this program expects: what an image is called proves
// nothing. An image, which cannot change, is read once.
func (b *Backend) verifyGateway(ctx context.Context, cli *client.Client, image, container string) error {
	want, err := boot.Digest()
	if err != nil {
		return err
	}
	b.gateways.mu.Lock()
	defer b.gateways.mu.Unlock()
	if b.gateways.verified == image+want {
		return nil
	}
	res, err := cli.CopyFromContainer(ctx, container, client.CopyFromContainerOptions{SourcePath: boot.Binary})
	if err != nil {
		return err
	}
	defer res.Content.Close()
	content := &arriving{r: res.Content}
	got, err := digestInTar(content)
	if content.err != nil {
		return during("reading the gateway back", content.err)
	}
	if err == nil && got != want {
		err = fmt.Errorf("it has %s, expected %s", got, want)
	}
	if err != nil {
		return &driver.Error{Code: driver.CodeConflict, Field: "network", Hint: "docker image rm -f " + gatewayTag(want) + ", then " + hintSetup,
			Err: fmt.Errorf("image %s does not hold this release's gateway: %w", gatewayTag(want), err)}
	}
	b.gateways.verified = image + want
	return nil
}

// gatewayOptions is the create call of a gateway. It is made without IPv6 and
// without forwarding, which it begins itself once its packet filter stands.
func (o order) gatewayOptions(w *way, args []string) client.ContainerCreateOptions {
	no, pids := false, int64(gatewayPIDs)
	sysctls := map[string]string{"net.ipv4.ip_forward": "0"}
	if w.ipv6 {
		sysctls["net.ipv6.conf.all.disable_ipv6"], sysctls["net.ipv6.conf.default.disable_ipv6"] = "1", "1"
	}
	owned := !o.spec.Detached
	return client.ContainerCreateOptions{
		Name: namePrefix + "gateway-" + o.spec.Token + "-" + w.set,
		Config: &container.Config{
			Image: w.image, User: "0:0", Entrypoint: []string{boot.Binary}, Cmd: args, WorkingDir: "/", Hostname: "gateway", Env: []string{gatewayHeap},
			Labels: o.partLabels(driver.RoleGateway, w.set), Healthcheck: &container.HealthConfig{Test: []string{"NONE"}}, StopSignal: "SIGTERM",
			AttachStdin: owned, OpenStdin: owned, StdinOnce: owned, AttachStdout: true, AttachStderr: true,
		},
		HostConfig: &container.HostConfig{
			NetworkMode: container.NetworkMode(w.inside),
			// One that ends leaves nothing, and does not come back by itself.
			AutoRemove:     true,
			RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
			LogConfig:      container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "256k", "max-file": "2"}},
			CapDrop:        []string{"ALL"},
			CapAdd:         gatewayCaps,
			SecurityOpt:    []string{"no-new-privileges:true", "seccomp=" + seccompProfile},
			Sysctls:        sysctls,
			ReadonlyRootfs: true,
			IpcMode:        container.IPCModePrivate,
			CgroupnsMode:   container.CgroupnsModePrivate,
			Init:           &no,
			Resources: container.Resources{Memory: gatewayMemory, MemorySwap: gatewayMemory, CPUPeriod: cpuPeriod, CPUQuota: cpuPeriod, PidsLimit: &pids,
				OomKillDisable: &no, Ulimits: []*units.Ulimit{{Name: "core"}}},
		},
		NetworkingConfig: &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
			w.inside: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: nth(w.cfg.Inside, 2)}}}},
	}
}

// partLabels are those of what belongs to a sandbox.
func (o order) partLabels(role, set string) map[string]string {
	l := o.labels()
	l[driver.LabelRole], l[labelSet] = role, set
	return l
}

// startGateway brings a gateway up and holds what it says against what was
// ordered. What it made is removed with its set, whatever the error.
func (b *Backend) startGateway(ctx context.Context, cli *client.Client, o order, w *way) error {
	args, err := w.cfg.Args()
	if err != nil {
		return err
	}
	id, warnings, err := b.createContainer(ctx, cli, "create", o.gatewayOptions(w, args))
	if err != nil {
		return err
	}
	if err := refuseWarnings(warnings); err != nil {
		return err
	}
	if err := b.verifyGateway(ctx, cli, w.image, id); err != nil {
		return err
	}
	if _, err := cli.NetworkConnect(ctx, w.uplink, client.NetworkConnectOptions{Container: id, EndpointConfig: w.endpoint()}); err != nil {
		return err
	}
	if w.heard, err = listen(ctx, cli, id, w.cfg.Owned); err != nil {
		return err
	}
	if _, err := cli.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return err
	}
	line, err := w.heard.first(ctx)
	if e, ok := errors.AsType[*driver.Error](err); ok && e.Code == driver.CodeUnsupported {
		e.Hint = orProxy(e.Hint, o.spec.Detached)
	}
	if err != nil {
		return err
	}
	if line.Ready == nil {
		return errors.New("the gateway said something else than that it is ready")
	}
	if !w.cfg.Owned { // nobody's in particular
		w.heard.close()
		w.heard = nil
	}
	return w.compare(*line.Ready)
}

// compare holds what a gateway found when it looked at itself against what was
// ordered.
func (w *way) compare(r boot.Ready) error {
	rules, err := gateway.Firewall(w.cfg.Rules, w.cfg.Site(r.Inside, r.Uplink))
	if err != nil {
		return err
	}
	var f findings
	equal(&f, "the gateway's packet filter", boot.DigestOf(rules), r.Ruleset)
	equal(&f, "the gateway's user", strconv.FormatUint(uint64(w.cfg.UID), 10), strconv.FormatUint(uint64(r.UID), 10))
	equal(&f, "the gateway's capabilities", 0, r.Caps)
	equal(&f, "the gateway's address", fmt.Sprintf("%s/%d", w.gateway, w.cfg.Inside.Bits()), r.Address)
	f.expect(len(r.IPv6) == 0, "the gateway's IPv6", "none", r.IPv6)
	return f.err()
}

// answerLimit bounds how long a gateway is waited for that was asked: one that
// was stopped never answers.
const answerLimit = 2 * time.Second

func mute() error {
	return &driver.Error{Code: driver.CodeUnavailable, Hint: "ask again when the engine's host is less busy, and the gateway not paused",
		Err: fmt.Errorf("the gateway did not say within %v what it has refused", answerLimit)}
}

// deniedByGateway has the gateway tell what it has refused by now. When there is
// none any more, it is what was told last, if anything was.
func (s *sandbox) deniedByGateway(ctx context.Context) (driver.Denials, error) {
	asking, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	ask := s.signalGateway
	if s.heard != nil {
		ask = s.heard.ask
	}
	denied, known, err := ask(asking)
	if err != nil && ctx.Err() == nil && asking.Err() != nil {
		err = mute()
	}
	if err != nil {
		return driver.Denials{}, err
	}
	if !known {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.denied == nil {
			return driver.Denials{Unknown: true}, nil
		}
		return *s.denied, nil
	}
	told := denials(denied)
	s.mu.Lock()
	s.denied = &told
	s.mu.Unlock()
	return told, nil
}

// signalGateway asks a gateway whose stdin somebody else has, or nobody. What it
// says from now on is new enough, whoever asked for it.
func (s *sandbox) signalGateway(ctx context.Context) (boot.Denied, bool, error) {
	containers, _, err := s.b.setOf(ctx, s.cli, s.set)
	if err != nil {
		return boot.Denied{}, false, err
	}
	for _, c := range containers {
		if !isGateway(c.Labels, programOf(c)) {
			continue
		}
		l, err := listen(ctx, s.cli, c.ID, false)
		if err == nil {
			defer l.close()
			_, err = s.cli.ContainerKill(ctx, c.ID, client.ContainerKillOptions{Signal: "SIGUSR1"})
		}
		if err != nil {
			return boot.Denied{}, false, s.without(ctx, c.ID, err)
		}
		return l.hear(ctx, func() bool { return l.heard })
	}
	return boot.Denied{}, false, nil
}

// without is why a gateway could not be asked: nil if it has ended. What an
// engine says to who would attach does not tell.
func (s *sandbox) without(ctx context.Context, id string, err error) error {
	res, ierr := s.cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	switch {
	case absent(ierr):
		return nil
	case ierr != nil:
		return ierr
	case res.Container.State.Paused:
		return mute()
	case !res.Container.State.Running:
		return nil
	}
	return err
}

// denials are a gateway's words, which it may have got from a hostile program,
// within bounds.
func denials(d boot.Denied) driver.Denials {
	out := driver.Denials{Other: max(d.Other, 0)}
	for i, one := range d.Told {
		if i >= boot.MaxTold {
			out.Other += max(one.Count, 0)
			continue
		}
		one.Host = one.Host[:min(len(one.Host), maxDeniedHost)]
		out.Told = append(out.Told, one.Driver())
	}
	return out
}

// maxDeniedHost is as in driver.Denial.
const maxDeniedHost = 256
