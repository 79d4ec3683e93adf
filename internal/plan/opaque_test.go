package plan

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// What nobody here reads is counted, and told of where it may start containers.
func TestWhatIsNotReadIsNotPassedOver(t *testing.T) {
	t.Parallel()
	text, changes, after := "", "", `"change":{"actions":["create"],"after":{"name":"x"},"after_unknown":{}}`
	for _, kind := range []string{
		"helm_release", "docker_plugin", "docker_compose", "kubernetes_env", "kubernetes_from_the_future", "sandboxio_pool", // these may
		"docker_network", "kubernetes_namespace_v1", "kubernetes_horizontal_pod_autoscaler_v2beta2", "aws_s3_bucket", "random_id",
	} {
		text += "resource \"" + kind + "\" \"x\" {\n  name = \"x\"\n}\n"
		changes += `{"address":"` + kind + `.x","mode":"managed","type":"` + kind + `","name":"x",` + after + `},`
	}
	changes += `{"address":"helm_release.old","mode":"managed","type":"helm_release","name":"old","change":{"actions":["delete"],"before":{},"after":null}},
		{"address":"data.helm_template.x","mode":"data","type":"helm_template","name":"x",` + after + `}`
	dir := write(t, map[string]string{"main.tf": text, "p.json": jsonPlan(changes)})
	want := []string{"docker_compose.x", "docker_plugin.x", "helm_release.x", "kubernetes_env.x", "kubernetes_from_the_future.x", "sandboxio_pool.x"}
	for _, name := range []string{dir, filepath.Join(dir, "p.json")} {
		items, seen := read(t, name, Options{Source: dir})
		var got []string
		for _, i := range items {
			got = append(got, i.Address)
			if i.Opaque == "" || i.Place(Part{}, "").Line == 0 {
				t.Errorf("%s: %q at %+v", i.Address, i.Opaque, i.Place(Part{}, ""))
			}
		}
		if d := cmp.Diff(want, sortedCopy(got)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if seen.skipped() != 11 || seen.Skipped["helm_release"] != 1 || seen.Judged != 0 || seen.Nothing() == nil {
			t.Errorf("%s: %+v", name, seen)
		}
		if r := seen.Remarks(); len(r) != 1 || len(r[0]) < 40 {
			t.Errorf("%s: %q", name, r)
		}
	}
}

func TestAServiceIsReadAsAContainer(t *testing.T) {
	t.Parallel()
	got := parts(t, `resource "docker_service" "s" {
  name = "s"
  task_spec {
    container_spec {
      image   = "busybox"
      command = ["sh"]
      args    = ["-c", "x"]
      env     = { A = "1", B = var.b }
      user    = "0"
      cap_add = ["NET_ADMIN"]
      sysctl  = { "kernel.msgmax" = "1" }
      labels {
        label = "owner"
        value = "me"
      }
      privileges {
        se_linux_context { disable = true }
      }
      mounts {
        type   = "bind"
        source = "/var/run/docker.sock"
        target = "/s"
      }
      dns_config { nameservers = ["9.9.9.9"] }
    }
    resources {
      limits {
        nano_cpus    = 1500000000
        memory_bytes = 536870912
      }
    }
    restart_policy { condition = "none" }
    networks_advanced { name = "host" }
    networks_advanced { id = "n" }
  }
  endpoint_spec {
    ports {
      target_port    = 80
      published_port = 8080
    }
  }
}`, "docker_service")
	if len(got) != 1 {
		t.Fatalf("got %+v", got)
	}
	if d := cmp.Diff([]string{`env["B"]`}, got[0].Input.Unknown); d != "" {
		t.Error(d)
	}
	want := others("docker")
	want.Image, want.Labels, want.Restart = policy.ImageOf("busybox"), map[string]string{"owner": "me"}, new("no")
	want.Env, want.Command = []policy.Env{{Name: "A", Value: "1"}, {Name: "B"}}, []string{"sh", "-c", "x"}
	want.Resources = policy.Caps{CPUMillis: new(int64(1500)), MemoryMiB: new(int64(512))}
	want.Process = policy.Process{
		User: new("0"), Privileged: new(false), ReadOnlyRoot: new(false), Seccomp: new("default"), SELinux: new("unconfined"), CapAdd: []string{"NET_ADMIN"},
		Sysctls: []string{"kernel.msgmax"}, HostNamespaces: []string{"network"},
	}
	want.Mounts = []policy.Mount{{Type: new("bind"), Source: new("/var/run/docker.sock"), Target: new("/s"), ReadOnly: new(false)}}
	want.Network.Joined, want.Network.DNS = []string{"n"}, []string{"9.9.9.9"}
	want.Network.Publish = []policy.Publish{{Port: new(int64(80)), HostPort: new(int64(8080))}}
	if d := cmp.Diff(want, got[0].Input.Resource); d != "" {
		t.Error(d)
	}
	if at := got[0].Attribute("mounts[0].source"); at != "task_spec.container_spec.mounts.source" && at != "task_spec[0].container_spec[0].mounts.source" {
		t.Errorf("got %s", at)
	}
	for _, text := range []string{
		"resource \"docker_service\" \"s\" {\n dynamic \"task_spec\" {\n for_each = var.x\n content {}\n }\n}",
		"resource \"docker_service\" \"s\" {\n task_spec {\n dynamic \"container_spec\" {\n for_each = var.x\n content {}\n }\n }\n}",
	} {
		if got := parts(t, text, "docker_service"); len(got) != 1 || len(got[0].Input.Unknown) < 5 {
			t.Errorf("%s\ngives %+v", text, got)
		}
	}
}

func TestAVolumeThatIsAPathOfTheHostIsAMountOfIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, body, source string }{
		{"docker_volume", `driver_opts = { type = "none", o = "bind", device = "/etc" }`, "/etc"},
		{"docker_volume", `driver_opts = { device = var.d }`, "?"},
		{"docker_volume", `driver_opts = var.o`, "?"},
		{"docker_volume", `driver_opts = { type = "nfs", o = "addr=10.0.0.1", device = ":/x" }`, ""},
		{"docker_volume", ``, ""},
		{"kubernetes_persistent_volume", "spec {\n persistent_volume_source {\n host_path {\n path = \"/etc\"\n }\n }\n}", "/etc"},
		{"kubernetes_persistent_volume_v1", "spec {\n persistent_volume_source {\n local {\n path = var.p\n }\n }\n}", "?"},
		{"kubernetes_persistent_volume_v1", "spec {\n persistent_volume_source {\n nfs {\n path = \"/\"\n server = \"h\"\n }\n }\n}", ""},
		{"kubernetes_manifest", `manifest = { kind = "PersistentVolume", spec = { hostPath = { path = "/etc" } } }`, "/etc"},
	} {
		items, seen := read(t, write(t, map[string]string{"main.tf": "resource \"" + c.kind + "\" \"v\" {\n" + c.body + "\n}"}), Options{})
		if c.source == "" {
			if len(items) != 0 || seen.Skipped[c.kind] != 1 {
				t.Errorf("%s %s gives %+v", c.kind, c.body, items)
			}
			continue
		}
		if len(items) != 1 || len(items[0].Parts) != 1 {
			t.Errorf("%s %s gives %+v", c.kind, c.body, items)
			continue
		}
		p := items[0].Parts[0]
		m := p.Input.Resource.Mounts[0]
		unknown := slices.Contains(p.Input.Unknown, "mounts[0].source")
		if *m.Type != "bind" || unknown != (c.source == "?") || !unknown && *m.Source != c.source {
			t.Errorf("%s %s gives %+v, unknown %q", c.kind, c.body, m, p.Input.Unknown)
		}
	}
}

func TestPodsAreFoundWhereverAManifestHasThem(t *testing.T) {
	t.Parallel()
	pod := `{ containers = [{ name = "c", image = "busybox", securityContext = { privileged = true } }] }`
	for name, c := range map[string]struct {
		manifest string
		n        int
	}{
		"a list":                           {`{ kind = "List", items = [{ kind = "Pod", spec = ` + pod + ` }, { kind = "ConfigMap" }, { kind = "Deployment", spec = { template = { spec = ` + pod + ` } } }] }`, 2},
		"a list of pods":                   {`{ kind = "PodList", items = [{ kind = "Pod", spec = ` + pod + ` }] }`, 1},
		"a template of a pod":              {`{ kind = "PodTemplate", template = { spec = ` + pod + ` } }`, 1},
		"a rollout":                        {`{ kind = "Rollout", spec = { template = { spec = ` + pod + ` } } }`, 1},
		"a service of Knative":             {`{ kind = "Service", apiVersion = "serving.knative.dev/v1", spec = { template = { spec = ` + pod + ` } } }`, 1},
		"a job with several roles":         {`{ kind = "RayCluster", spec = { headGroupSpec = { template = { spec = ` + pod + ` } }, workerGroupSpecs = [{ template = { spec = ` + pod + ` } }] } }`, 2},
		"containers that are beside a pod": {`{ kind = "Pod", spec = { containers = [{ image = "a" }], initContainers = [{ image = "b" }], ephemeralContainers = [{ image = "c", securityContext = { privileged = true } }] } }`, 3},
		"none":                             {`{ kind = "Certificate", spec = { containers = ["x"] } }`, 0},
	} {
		items, _ := read(t, write(t, map[string]string{"main.tf": "resource \"kubernetes_manifest\" \"x\" {\n manifest = " + c.manifest + "\n}"}), Options{})
		n := 0
		for _, i := range items {
			n += len(i.Parts)
			if p := i.Parts[len(i.Parts)-1]; !*p.Input.Resource.Process.Privileged || !i.Place(p, "process.privileged").Exact {
				t.Errorf("%s: %+v at %+v", name, p.Input.Resource.Process, i.Place(p, "process.privileged"))
			}
		}
		if n != c.n {
			t.Errorf("%s: %d containers, want %d", name, n, c.n)
		}
	}
}

func TestWhatAPodHasOfItsNodeIsSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pod, container string
		seen           func(policy.Process) bool
	}{
		{`securityContext = { windowsOptions = { hostProcess = true } }`, ``, func(p policy.Process) bool { return *p.Privileged }},
		{``, `securityContext = { windowsOptions = { hostProcess = true } }`, func(p policy.Process) bool { return *p.Privileged }},
		{`securityContext = { seLinuxOptions = { type = "spc_t" } }`, ``, func(p policy.Process) bool { return *p.SELinux == "unconfined" }},
		{`securityContext = { seLinuxOptions = { type = "spc_t" } }`, `securityContext = { seLinuxOptions = { type = "container_t" } }`, func(p policy.Process) bool { return p.SELinux == nil }},
		{``, `securityContext = { procMount = "Unmasked" }`, func(p policy.Process) bool { return *p.UnmaskedProc }},
		{``, `volumeDevices = [{ name = "d", devicePath = "/dev/x" }]`, func(p policy.Process) bool { return slices.Equal(p.Devices, []string{"the disk d"}) }},
		{``, `resources = { limits = { "nvidia.com/gpu" = "1", cpu = "1", "hugepages-2Mi" = "1Gi" } }`, func(p policy.Process) bool { return slices.Equal(p.Devices, []string{"nvidia.com/gpu"}) }},
		{``, `resources = { claims = [{ name = "g" }] }`, func(p policy.Process) bool { return slices.Equal(p.Devices, []string{"the claim g"}) }},
	} {
		got := parts(t, "resource \"kubernetes_manifest\" \"x\" {\n manifest = { kind = \"Pod\", spec = {\n"+c.pod+"\ncontainers = [{\n image = \"i\"\n"+c.container+"\n}] } }\n}", "kubernetes_manifest")
		if len(got) != 1 || !c.seen(got[0].Input.Resource.Process) {
			t.Errorf("%s %s gives %+v", c.pod, c.container, got)
		}
	}
}

func TestDevicesAndCgroupsOfAContainerAreSeen(t *testing.T) {
	t.Parallel()
	p := spelled(t, "main.tf", `resource "docker_container" "c" {
  name          = "c"
  image         = "busybox"
  security_opts = ["writable-cgroups=true"]
  pid_mode      = "container:x"
  userns_mode   = "host"
  cgroupns_mode = "host"
  device_requests {
    driver     = "cdi"
    device_ids = ["nvidia.com/gpu=all"]
  }
  device_requests {
    driver = "nvidia"
    count  = -1
  }
}`).Input.Resource.Process
	if !*p.WritableCgroups || !slices.Equal(p.JoinedNamespaces, []string{"pid"}) || !slices.Equal(p.HostNamespaces, []string{"user", "cgroup"}) || !slices.Equal(p.Devices, []string{"nvidia.com/gpu=all", "nvidia:-1"}) {
		t.Errorf("got %+v", p)
	}
}
