package plan

import (
	"context"
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// template reads a sandboxio_template.
func (b *builder) template(ctx context.Context, r *reader, root node) []Part {
	t := b.written(r, root)
	var info driver.Info
	var enforced driver.Plan
	if slices.Contains(r.unknown, "backend") {
		r.unknown = append(r.unknown, "isolation") // which tier is certain depends on the backend
	} else {
		backend, err := b.backend(ctx, r, t.Backend, root.get("image").isNull())
		if err != nil {
			r.fail(err)
			return nil
		}
		info = backend.Info()
		enforced.Isolation = info.Isolation
		if len(r.unknown) == 0 && r.err() == nil {
			if p, err := backend.Check(wish.Order(t, info)); err == nil {
				enforced = p // only its tier is told to the policy
			}
		}
	}
	if r.err() == nil && len(r.unknown) == 0 {
		if _, err := t.Resolve(); err != nil {
			r.fail(err)
		}
	}
	return []Part{r.part(policy.KindTemplate, policy.FromSpec(info, wish.Order(t, info), enforced, t.Secrets))}
}

// written is a template as it stands in the configuration.
func (b *builder) written(r *reader, n node) sandbox.Template {
	var t sandbox.Template
	t.Name = n.get("name").str() // no rule reads it
	r.name, r.places["name"] = t.Name, n.get("name").path
	t.Backend = r.text("backend", b.named(n.get("backend")))
	t.Image = r.text("image", n.get("image"))
	t.Reaper = r.text("reaper", n.get("reaper"))
	var err error
	if s := r.text("lifetime_seconds", n.get("lifetime")); s != "" {
		t.Lifetime, err = wish.Duration("lifetime", s)
		r.fail(err)
	}
	r.places["lifetime"] = n.get("lifetime").path
	t.Isolation, err = driver.ParseIsolation(r.text("isolation", n.get("isolation")))
	r.fail(err)
	t.Profile, err = driver.ParseProfile(r.text("profile", n.get("profile")))
	r.fail(err)
	trust, reason := n.get("trust"), n.get("trust_reason")
	level, why := r.text("trust", trust), r.text("trust_reason", reason)
	if !trust.isUnknown() && !reason.isUnknown() {
		t.Trust, err = driver.ParseTrust(level, why)
		r.fail(err)
	}
	t.MultiTenant = r.flag("multi_tenant", n.get("multi_tenant"))
	caps := n.get("resources")
	if r.note("resources", caps) {
		t.Resources = driver.Resources{
			CPUMillis: r.whole("resources.cpu_millis", caps.get("cpu_millis")),
			MemoryMiB: r.whole("resources.memory_mib", caps.get("memory_mib")),
			DiskMiB:   r.whole("resources.disk_mib", caps.get("disk_mib")),
			PIDs:      r.whole("resources.pids", caps.get("pids")),
		}
	}
	t.Network = r.network(n.get("network_policy"))
	t.Env = r.stringMap("env", n.get("env"))
	t.Labels = r.stringMap("labels", n.get("labels"))
	t.Secrets = r.texts("secrets", n.get("secrets"))
	slices.Sort(t.Secrets)
	return t
}

// networkPolicy reads a sandboxio_network_policy.
func networkPolicy(r *reader, root node) []Part {
	r.name = root.get("name").str()
	n := r.network(root)
	return []Part{r.part(policy.KindNetworkPolicy, policy.Resource{Network: policy.NetworkOf(n)})}
}

// schedule reads a sandboxio_reaper_schedule.
func (b *builder) schedule(r *reader, root node) []Part {
	var s driver.Schedule
	var err error
	s.Name = root.get("name").str()
	r.name = s.Name
	s.Cron = r.text("schedule.cron", root.get("cron"))
	s.DryRun = r.flag("schedule.dry_run", root.get("dry_run"))
	if text := r.text("schedule.interval_seconds", root.get("interval")); text != "" {
		s.Interval, err = wish.Duration("interval", text)
		r.fail(err)
	}
	if text := r.text("schedule.max_age_seconds", root.get("max_age")); text != "" {
		s.MaxAge, err = wish.Duration("max_age", text)
		r.fail(err)
	}
	s.Labels = r.stringMap("labels", root.get("labels"))
	out := policy.Resource{Labels: s.Labels, Schedule: policy.ScheduleOf(s)}
	if name := r.text("backend", b.named(root.get("backend"))); name != "" {
		out.Backend = &name
	}
	for _, name := range []string{"interval", "max_age"} {
		r.places[name] = root.get(name).path
	}
	return []Part{r.part(policy.KindReaperSchedule, out)}
}
