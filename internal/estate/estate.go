package estate

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/sandboxio/terraform-provider-sandboxio/drivers/docker"
	"github.com/sandboxio/terraform-provider-sandboxio/drivers/memory"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

type (
	// Docker are the docker door's own options, so that nobody else imports
	// the doors.
	Docker = docker.Options
	// Memory are the memory door's own options.
	Memory = memory.Options
)

// Config says which backends there are and what judges. The zero value is the
// Docker engine that the docker command would use, judged by the built-in
// rules.
type Config struct {
	Docker  *Docker
	Memory  *Memory
	Default string // name of the backend that an unnamed one means; "" = the only one configured, or docker
	Policy  policy.Options
}

// door opens one kind of backend.
type door struct {
	open func(context.Context, Config) (driver.Backend, error)
	from func(*url.URL, *Config) error // fills its part of a Config from a DSN
}

var doors = map[string]door{
	"docker": {
		open: func(ctx context.Context, c Config) (driver.Backend, error) { return docker.Open(ctx, deref(c.Docker)) },
		from: func(u *url.URL, c *Config) error { return fill(&c.Docker, u, docker.FromURL) },
	},
	"memory": {
		open: func(ctx context.Context, c Config) (driver.Backend, error) { return memory.Open(ctx, deref(c.Memory)) },
		from: func(u *url.URL, c *Config) error { return fill(&c.Memory, u, memory.FromURL) },
	},
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func fill[T any](to **T, u *url.URL, parse func(*url.URL) (T, error)) error {
	v, err := parse(u)
	*to = &v
	return err
}

// Kinds names every backend there is, sorted.
func Kinds() []string { return slices.Sorted(maps.Keys(doors)) }

// FromDSN makes the Config of a single backend, "docker://" or "memory://"
// with its parameters. Code: invalid, field "backend".
func FromDSN(dsn string) (Config, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		// The text of a parse error repeats the address, and with it whatever
		// password somebody put there.
		return Config{}, driver.Invalid("backend", "not an address of a backend", "write "+strings.Join(Kinds(), ":// or ")+"://")
	}
	d, ok := doors[u.Scheme]
	if !ok {
		return Config{}, driver.Invalid("backend", fmt.Sprintf("there is no backend %q", u.Scheme), "write "+strings.Join(Kinds(), ":// or ")+"://")
	}
	c := Config{Default: u.Scheme}
	return c, d.from(u, &c)
}

// Estate holds the configured backends and the policy. It is safe for
// concurrent use.
type Estate struct {
	config Config
	names  []string
	judge  *policy.Engine

	mu   sync.Mutex
	open map[string]driver.Backend
}

// Open makes an Estate. It reads the policy's sources, and the floor if the
// environment names one (policy.FloorVariable), and does no other I/O.
// Codes: invalid.
func Open(ctx context.Context, c Config) (*Estate, error) {
	e := &Estate{config: c, open: map[string]driver.Backend{}}
	if c.Docker != nil {
		e.names = append(e.names, "docker")
	}
	if c.Memory != nil {
		e.names = append(e.names, "memory")
	}
	switch {
	case len(e.names) == 0:
		e.names = []string{"docker"}
	case len(e.names) > 1 && c.Default == "":
		return nil, driver.Invalid("default_backend", fmt.Sprintf("%s are configured, and none is the default", strings.Join(e.names, " and ")),
			fmt.Sprintf("set default_backend = %q", e.names[0]))
	}
	if e.config.Default == "" {
		e.config.Default = e.names[0]
	}
	if !slices.Contains(e.names, e.config.Default) {
		return nil, driver.Invalid("default_backend", fmt.Sprintf("the backend %q is not configured", e.config.Default), fmt.Sprintf("use one of %s", strings.Join(e.names, ", ")))
	}
	var err error
	e.judge, err = policy.Load(ctx, c.Policy)
	return e, err
}

// Names lists the configured backends, sorted.
func (e *Estate) Names() []string { return slices.Clone(e.names) }

// Default is the backend that an unnamed one means.
func (e *Estate) Default() string { return e.config.Default }

// Policy is the judge of everything in this estate.
func (e *Estate) Policy() *policy.Engine { return e.judge }

// Backend opens the backend of that name, "" being the default, or gives the
// one that is open already. Code: invalid, field "backend".
func (e *Estate) Backend(ctx context.Context, name string) (driver.Backend, error) {
	if name == "" {
		name = e.config.Default
	}
	if !slices.Contains(e.names, name) {
		return nil, driver.Invalid("backend", fmt.Sprintf("the backend %q is not configured", name), fmt.Sprintf("use one of %s, or configure it", strings.Join(e.names, ", ")))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.open[name]; ok {
		return b, nil
	}
	b, err := doors[name].open(ctx, e.config)
	if err != nil {
		return nil, err
	}
	e.open[name] = b
	return b, nil
}

// Runtime makes a Runtime on the backend of that name. Its requests are judged
// by the estate's policy unless opts brings a Guard or a reason for none.
func (e *Estate) Runtime(ctx context.Context, name string, opts sandbox.Options) (*sandbox.Runtime, error) {
	b, err := e.Backend(ctx, name)
	if err != nil {
		return nil, err
	}
	if opts.Guard == nil && opts.Unguarded == "" {
		opts.Guard = e.judge.Guard()
	}
	return sandbox.New(b, opts), nil
}

// Close closes the open backends. It ends no sandbox.
func (e *Estate) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(e.open)) {
		errs = append(errs, e.open[name].Close())
		delete(e.open, name)
	}
	return driver.Join(errs...)
}
