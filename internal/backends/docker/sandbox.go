package docker

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/outlet"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// sandbox is one container of ours.
type sandbox struct {
	b       *Backend
	cli     *client.Client
	id      string
	creator bool           // holds the one connection that the sandbox lives by
	set     string         // what it shares with its gateway and networks; "" without
	router  netip.Addr     // its gateway; none without a network
	heard   *lines         // what its gateway says to its owner
	remains bool           // there is no container, only what belonged to it
	joining chan struct{}  // held while joining the guest
	proxied bool           // there is a way out in mode proxy
	outlet  *outlet.Outlet // which is nil but in the creator's process

	mu     sync.Mutex
	status driver.Status
	guest  *guest.Client   // nil before the first operation of an attached one
	denied *driver.Denials // as its gateway told last
}

var (
	_ driver.Sandbox  = (*sandbox)(nil)
	_ driver.Extender = (*sandbox)(nil)
	_ driver.Aser     = (*sandbox)(nil)
)

// ContainerID is what As gives of a sandbox.
type ContainerID string

func (s *sandbox) Status() driver.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	st.Labels = maps.Clone(st.Labels)
	return st
}

// As gives the engine's client or the container's id.
func (s *sandbox) As(target any) bool {
	switch to := target.(type) {
	case **client.Client:
		*to = s.cli
	case *ContainerID:
		*to = ContainerID(s.id)
	default:
		return false
	}
	return true
}

func (s *sandbox) Start(ctx context.Context, cmd driver.Cmd) (driver.Process, error) {
	if err := cmd.Validate(); err != nil {
		return nil, fail(ctx, "start", s.id, err)
	}
	c, err := s.join(ctx)
	if err != nil {
		return nil, err
	}
	p, err := c.Start(ctx, cmd)
	return p, fail(ctx, "start", s.id, err)
}

func (s *sandbox) Files() driver.Files { return files{s} }

// Kill removes the container by force, whatever state it is in.
func (s *sandbox) Kill(ctx context.Context) error {
	var err error
	if !s.remains {
		err = s.b.remove(ctx, s.cli, s.id)
	}
	if s.set != "" {
		// Its programs have ended, so that it tells all. It is no reason to
		// leave anything behind when it does not.
		_, _ = s.deniedByGateway(ctx)
		if s.heard != nil {
			s.heard.close()
		}
		err = errors.Join(err, s.b.removeSet(ctx, s.cli, s.set))
	}
	s.mu.Lock()
	c := s.guest
	s.mu.Unlock()
	if c != nil {
		_ = c.Close()
	}
	if err == nil {
		return nil
	}
	return driver.Join(ctx.Err(), leaked("kill", s.id, err))
}

// join gives a live connection to the guest. The creator's is the only one an
// owned sandbox has; everybody else comes by the bridge, and comes again when
// that connection was lost and the container was not.
func (s *sandbox) join(ctx context.Context) (*guest.Client, error) {
	select {
	case s.joining <- struct{}{}:
		defer func() { <-s.joining }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	c := s.guest
	s.mu.Unlock()
	if c != nil {
		select {
		case <-c.Done():
		default:
			return c, nil
		}
		if s.creator {
			return c, nil // it says gone, and why
		}
	}
	if s.remains {
		return nil, fail(ctx, "attach", s.id, &driver.Error{Code: driver.CodeGone, Err: errors.New("of the sandbox only its network is left")})
	}
	c, tier, evidence, err := s.bridge(ctx)
	if err != nil {
		return nil, fail(ctx, "attach", s.id, ended(err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guest = c
	s.status.Isolation, s.status.Evidence = tier, evidence
	return c, nil
}

func (s *sandbox) bridge(ctx context.Context) (*guest.Client, driver.Isolation, driver.Evidence, error) {
	var tier driver.Isolation
	var evidence driver.Evidence
	ctx, cancel := context.WithTimeoutCause(ctx, greetLimit, errSlow)
	defer cancel()
	conn, err := bridge(ctx, s.cli, s.id)
	if err != nil {
		return nil, tier, evidence, slow(ctx, err)
	}
	c, err := greet(ctx, s.cli, s.id, conn, guest.Options{Backend: Name, Sandbox: s.id})
	if err != nil {
		return nil, tier, evidence, slow(ctx, err)
	}
	rep, err := c.Attest(ctx)
	if err == nil {
		kernel := ""
		if h := s.b.host.Load(); h != nil {
			kernel = h.kernel
		}
		tier, evidence = measured(rep, kernel, time.Now())
		err = invariant(rep, tier, s.router)
	}
	if err != nil {
		_ = c.Close()
		return nil, tier, evidence, slow(ctx, err)
	}
	return c, tier, evidence, nil
}

// ended turns the engine's ways of saying that a container no longer runs
// into gone: it existed.
func ended(err error) error {
	switch {
	case absent(err):
	case cerrdefs.IsConflict(err) && strings.Contains(err.Error(), "is not running"):
	case cerrdefs.IsConflict(err) && strings.Contains(err.Error(), "paused"):
		return &driver.Error{Code: driver.CodeConflict, Hint: "docker unpause <id>, or kill the sandbox", Err: err}
	default:
		return err
	}
	return &driver.Error{Code: driver.CodeGone, Err: err}
}

// Attach finds a sandbox by its container's id. It does not reach inside: a
// paused one can be attached, and killed.
func (b *Backend) Attach(ctx context.Context, id string) (driver.Sandbox, error) {
	if !containerID.MatchString(id) {
		return nil, &driver.Error{Code: driver.CodeNotFound, Op: "attach", Backend: Name, Err: errors.New("not the id of a sandbox"), Hint: "sandboxio inspect lists the sandboxes; an id has 64 hex digits"}
	}
	cli, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	st, err := b.inspect(ctx, cli, id)
	if absent(err) || errors.Is(err, errForeign) {
		if s, rerr := b.attachRemains(ctx, cli, id); rerr == nil {
			return s, nil
		} else if !errors.Is(rerr, driver.CodeNotFound) {
			err = rerr
		}
	}
	if err != nil {
		return nil, fail(ctx, "attach", id, err)
	}
	return &sandbox{b: b, cli: cli, id: st.ID, set: st.set, router: st.router, proxied: st.proxied, joining: make(chan struct{}, 1), status: st.Status}, nil
}

var errForeign = errors.New("the container is not a sandbox of sandboxio")

// described is a sandbox as the engine describes it.
type described struct {
	driver.Status
	expires time.Time  // the latest deadline it may be given
	set     string     // as in sandbox
	router  netip.Addr // as in sandbox
	proxied bool       // as in sandbox
}

// inspect reads one container, and refuses those that are not ours.
func (b *Backend) inspect(ctx context.Context, cli *client.Client, id string) (described, error) {
	res, err := cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return described{}, err
	}
	c := res.Container
	if c.Config == nil || c.State == nil {
		return described{}, &driver.Error{Code: driver.CodeInternal, Err: errors.New("the engine describes the container only in part")}
	}
	deadline, expires, ok := deadlineOf(c.Name, c.Config.Labels)
	if !ok || !managed(c.Config.Labels, c.Path, c.Mounts) {
		return described{}, &driver.Error{Code: driver.CodeNotFound, Err: errForeign}
	}
	st := described{Status: statusOf(c.ID, c.Name, c.Config.Labels, deadline), expires: expires, set: c.Config.Labels[labelSet], proxied: c.Config.Labels[labelProxied] == "true"}
	if st.set != "" && c.HostConfig != nil && len(c.HostConfig.DNS) == 1 {
		st.router = c.HostConfig.DNS[0] // asked for at creation, and the sandbox must still have it
	}
	st.State, st.Image = stateOf(c.State.Status), c.Config.Image
	if t, err := time.Parse(time.RFC3339Nano, c.Created); err == nil {
		st.Created = t
	}
	if t, err := time.Parse(time.RFC3339Nano, c.State.FinishedAt); err == nil && st.State == driver.StateExited {
		st.Ended = t
	}
	return st, nil
}

func statusOf(id, name string, labels map[string]string, deadline time.Time) driver.Status {
	facts, own := driver.ParseLabels(labels)
	st := driver.Status{ID: id, Name: strings.TrimPrefix(name, "/"), Backend: Name, Deadline: deadline,
		Detached: labels[labelDetached] == "true", Facts: facts, Labels: own}
	if by, err := strconv.ParseInt(labels[labelStartBy], 10, 64); err == nil {
		st.StartBy = time.Unix(by, 0)
	}
	return st
}

func stateOf(s container.ContainerState) driver.State {
	switch s {
	case container.StateCreated:
		return driver.StateCreated
	case container.StatePaused:
		return driver.StatePaused
	case container.StateExited, container.StateDead:
		return driver.StateExited
	case container.StateRemoving:
		return driver.StateRemoving
	}
	return driver.StateRunning
}
