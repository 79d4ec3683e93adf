package plan

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// parts reads a directory of one file and gives the questions about one type.
func parts(t *testing.T, text, kind string) []Part {
	t.Helper()
	items, _ := read(t, write(t, map[string]string{"main.tf": text}), Options{})
	var out []Part
	for _, i := range items {
		if i.Type != kind {
			continue
		}
		if i.Problem != nil {
			t.Fatal(i.Problem)
		}
		out = append(out, i.Parts...)
	}
	return out
}

func TestADockerContainerHasTheEnginesDefaults(t *testing.T) {
	t.Parallel()
	got := parts(t, `resource "docker_container" "c" {
  name  = "c"
  image = "busybox"
}`, "docker_container")
	if len(got) != 1 || len(got[0].Input.Unknown) > 0 {
		t.Fatalf("got %+v", got)
	}
	want := policy.Resource{
		Backend: new("docker"), Trust: new("unstated"), Image: policy.ImageOf("busybox"), Labels: map[string]string{}, Restart: new("no"),
		Network: policy.Network{Default: new("allow"), Joined: []string{"bridge"}},
		Process: policy.Process{Privileged: new(false), ReadOnlyRoot: new(false), Seccomp: new("default")},
	}
	if d := cmp.Diff(want, got[0].Input.Resource); d != "" {
		t.Error(d)
	}
}

func TestADockerContainerIsReadInFull(t *testing.T) {
	t.Parallel()
	got := parts(t, `resource "docker_container" "c" {
  name         = "c"
  image        = "busybox"
  env          = ["A=1=2", "B"]
  entrypoint   = ["sh"]
  command      = ["-c", "x"]
  user         = "0:0"
  privileged   = true
  read_only    = true
  runtime      = "runsc"
  network_mode = "none"
  pid_mode     = "host"
  ipc_mode     = "container:x"
  cpus         = "1.5"
  memory       = 512
  restart      = "always"
  gpus         = "all"
  dns          = ["9.9.9.9"]
  sysctls      = { "net.core.somaxconn" = "1" }
  storage_opts = { size = "2g" }
  tmpfs        = { "/t" = "" }
  security_opts = ["no-new-privileges:true", "seccomp=unconfined", "apparmor:unconfined", "label=disable", "systempaths=unconfined"]
  capabilities {
    add  = ["cap_net_admin"]
    drop = ["ALL"]
  }
  devices { host_path = "/dev/kvm" }
  labels {
    label = "owner"
    value = "me"
  }
  volumes {
    host_path      = "/a"
    container_path = "/b"
  }
  volumes {
    volume_name    = "v"
    container_path = "/v"
    read_only      = true
  }
  mounts {
    type   = "bind"
    source = "/m"
    target = "/n"
    bind_options { propagation = "rshared" }
  }
  ports {
    internal = 80
    external = 8080
    ip       = "127.0.0.1"
  }
  ports { internal = 81 }
  publish_all_ports = true
  upload {
    file    = "/f"
    content = "x"
  }
}`, "docker_container")
	if len(got) != 1 || len(got[0].Input.Unknown) > 0 {
		t.Fatalf("got %+v", got)
	}
	want := policy.Resource{
		Backend: new("docker"), Trust: new("unstated"), Image: policy.ImageOf("busybox"), Labels: map[string]string{"owner": "me"}, Restart: new("always"),
		Env: []policy.Env{{Name: "A", Value: "1=2"}, {Name: "B"}}, Command: []string{"sh", "-c", "x"}, Files: []policy.Env{{Name: "/f", Value: "x"}},
		Resources: policy.Caps{CPUMillis: new(int64(1500)), MemoryMiB: new(int64(512)), DiskMiB: new(int64(2048))},
		Network: policy.Network{
			Default: new("deny"), DNS: []string{"9.9.9.9"},
			Publish: []policy.Publish{{Port: new(int64(80)), HostPort: new(int64(8080)), HostIP: new("127.0.0.1")}, {Port: new(int64(81))}, {}},
		},
		Process: policy.Process{
			User: new("0:0"), Privileged: new(true), ReadOnlyRoot: new(true), Runtime: new("runsc"), NoNewPrivileges: new(true), Seccomp: new("unconfined"),
			AppArmor: new("unconfined"), SELinux: new("unconfined"), UnmaskedProc: new(true), CapAdd: []string{"cap_net_admin"}, CapDrop: []string{"ALL"},
			HostNamespaces: []string{"pid"}, JoinedNamespaces: []string{"ipc"}, Devices: []string{"/dev/kvm", "gpu:all"}, Sysctls: []string{"net.core.somaxconn"},
		},
		Mounts: []policy.Mount{
			{Type: new("bind"), Source: new("/a"), Target: new("/b"), ReadOnly: new(false)},
			{Type: new("volume"), Source: new("v"), Target: new("/v"), ReadOnly: new(true)},
			{Type: new("bind"), Source: new("/m"), Target: new("/n"), ReadOnly: new(false), Propagation: new("rshared")},
			{Type: new("tmpfs"), Target: new("/t")},
		},
	}
	if d := cmp.Diff(want, got[0].Input.Resource); d != "" {
		t.Error(d)
	}
}

// What the provider reads back after an apply is unknown in a plan; left out of
// the configuration it is the default, written there it is unknown.
func TestWhatIsLeftOutOfAContainerIsItsDefaultAndNotUnknown(t *testing.T) {
	t.Parallel()
	plan := func(expressions, after, unknown string) string {
		return `{"format_version":"1.2","planned_values":{},"resource_changes":[{"address":"module.m[0].docker_container.c","module_address":"module.m[0]","mode":"managed","type":"docker_container","name":"c",
"change":{"actions":["create"],"before":null,"after":` + after + `,"after_unknown":` + unknown + `,"after_sensitive":{}}}],
"configuration":{"root_module":{"module_calls":{"m":{"module":{"resources":[{"mode":"managed","type":"docker_container","name":"c","expressions":` + expressions + `}]}}}}}}`
	}
	for _, c := range []struct {
		name, expressions, after, unknown string
		want                              []string
	}{
		{"left out", `{"name":{"constant_value":"c"}}`, `{"image":"i"}`, `{"runtime":true,"security_opts":true,"env":true,"ipc_mode":true,"command":true,"id":true}`, nil},
		{"taken from elsewhere is never the default (M165)", `{"runtime":{"references":["var.r"]},"env":{"references":["var.e"]}}`, `{"image":"i"}`, `{"runtime":true,"env":true,"ipc_mode":true}`,
			[]string{"env", "process.runtime"}},
		{"a block that something else makes", `{}`, `{"image":"i"}`, `{"volumes":true,"capabilities":true}`, []string{"mounts", "process.cap_add", "process.cap_drop"}},
		{"a path in a block", `{"volumes":[{"host_path":{"references":["var.p"]}}]}`, `{"image":"i","volumes":[{"container_path":"/x"}]}`, `{"volumes":[{"host_path":true}]}`,
			[]string{"mounts[0].source", "mounts[0].type"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, map[string]string{"p.json": plan(c.expressions, c.after, c.unknown)})
			items, _ := read(t, filepath.Join(dir, "p.json"), Options{})
			if d := cmp.Diff(c.want, sortedCopy(items[0].Parts[0].Input.Unknown)); d != "" {
				t.Error(d)
			}
		})
	}
}

const podSpec = `
      active_deadline_seconds = 600
      host_pid                = true
      runtime_class_name      = "gvisor"
      security_context {
        run_as_user     = "1000"
        run_as_non_root = true
        seccomp_profile { type = "RuntimeDefault" }
        sysctl {
          name  = "kernel.shm_rmid_forced"
          value = "1"
        }
      }
      container {
        name    = "c"
        image   = "busybox"
        command = ["sh"]
        env {
          name  = "A"
          value = "1"
        }
        env {
          name = "S"
          value_from {
            secret_key_ref {
              name = "s"
              key  = "k"
            }
          }
        }
        port {
          container_port = 80
          host_port      = 8080
        }
        port { container_port = 81 }
        resources {
          limits = { cpu = "500m", memory = "1Gi", "ephemeral-storage" = "100M" }
        }
        security_context {
          privileged = true
          capabilities { drop = ["ALL"] }
        }
        volume_mount {
          name              = "h"
          mount_path        = "/h"
          mount_propagation = "Bidirectional"
        }
        volume_mount {
          name       = "p"
          mount_path = "/p"
        }
      }
      volume {
        name = "h"
        host_path { path = "/srv" }
      }
      volume {
        name = "p"
        persistent_volume_claim { claim_name = "claim" }
      }`

const podYAML = `{
  activeDeadlineSeconds = 600
  hostPID = true
  runtimeClassName = "gvisor"
  securityContext = { runAsUser = 1000, runAsNonRoot = true, seccompProfile = { type = "RuntimeDefault" }, sysctls = [{ name = "kernel.shm_rmid_forced", value = "1" }] }
  containers = [{
    name = "c", image = "busybox", command = ["sh"]
    env = [{ name = "A", value = "1" }, { name = "S", valueFrom = { secretKeyRef = { name = "s", key = "k" } } }]
    ports = [{ containerPort = 80, hostPort = 8080 }, { containerPort = 81 }]
    resources = { limits = { cpu = "500m", memory = "1Gi", "ephemeral-storage" = "100M" } }
    securityContext = { privileged = true, capabilities = { drop = ["ALL"] } }
    volumeMounts = [{ name = "h", mountPath = "/h", mountPropagation = "Bidirectional" }, { name = "p", mountPath = "/p" }]
  }]
  volumes = [{ name = "h", hostPath = { path = "/srv" } }, { name = "p", persistentVolumeClaim = { claimName = "claim" } }]
}`

// One pod is one question, whichever resource describes it.
func TestAPodIsReadFromEveryResourceThatDescribesOne(t *testing.T) {
	t.Parallel()
	want := policy.Resource{
		Backend: new("kubernetes"), Trust: new("unstated"), Image: policy.ImageOf("busybox"), Labels: map[string]string{"owner": "me"}, Restart: new("always"),
		LifetimeSeconds: new(int64(600)), ServiceToken: new(true), Env: []policy.Env{{Name: "A", Value: "1"}}, Command: []string{"sh"},
		Resources: policy.Caps{CPUMillis: new(int64(500)), MemoryMiB: new(int64(1024)), DiskMiB: new(int64(96))},
		Network:   policy.Network{Default: new("allow"), Publish: []policy.Publish{{Port: new(int64(80)), HostPort: new(int64(8080))}}},
		Process: policy.Process{
			User: new("1000"), NonRoot: new(true), Privileged: new(true), ReadOnlyRoot: new(false), NoNewPrivileges: new(false), Seccomp: new("default"), UnmaskedProc: new(false),
			CapDrop: []string{"ALL"}, HostNamespaces: []string{"pid"}, Sysctls: []string{"kernel.shm_rmid_forced"}, Runtime: new("gvisor"),
		},
		Mounts: []policy.Mount{
			{Type: new("bind"), Source: new("/srv"), Target: new("/h"), ReadOnly: new(false), Propagation: new("rshared")},
			{Type: new("volume"), Source: new("claim"), Target: new("/p"), ReadOnly: new(false)},
		},
	}
	meta := "metadata { labels = { owner = \"me\" } }\n"
	block := func(kind, inner string) string { return "resource \"" + kind + "\" \"x\" {\n" + inner + "\n}\n" }
	template := "spec {\n template {\n" + meta + "spec {" + podSpec + "\n}\n}\n}"
	job := "spec {\n job_template {\n metadata {}\n" + template + "\n}\n}"
	manifest := func(kind, spec string) string {
		return "manifest = { apiVersion = \"v1\", kind = \"" + kind + "\", metadata = { labels = { owner = \"me\" } }, spec = " + spec + " }"
	}
	inTemplate := "{ template = { metadata = { labels = { owner = \"me\" } }, spec = " + podYAML + " } }"
	texts := map[string]string{
		"kubernetes_pod": meta + "spec {" + podSpec + "\n}", "kubernetes_pod_v1": meta + "spec {" + podSpec + "\n}",
		"kubernetes_cron_job_v1": job, "kubernetes_manifest": manifest("Pod", podYAML),
	}
	for _, kind := range []string{"deployment", "deployment_v1", "stateful_set_v1", "daemon_set_v1", "daemonset", "job_v1", "replication_controller"} {
		texts["kubernetes_"+kind] = template
	}
	for kind, text := range texts {
		got := parts(t, block(kind, text), kind)
		if len(got) != 1 {
			t.Errorf("%s: %d containers", kind, len(got))
			continue
		}
		if d := cmp.Diff(want, got[0].Input.Resource); d != "" || len(got[0].Input.Unknown) > 0 {
			t.Errorf("%s: unknown %v %s", kind, got[0].Input.Unknown, d)
		}
	}
	for kind, spec := range map[string]string{"Deployment": inTemplate, "Job": inTemplate, "CronJob": "{ jobTemplate = { spec = " + inTemplate + " } }", "Sandbox": "{ podTemplate = { metadata = { labels = { owner = \"me\" } }, spec = " + podYAML + " } }"} {
		got := parts(t, block("kubernetes_manifest", manifest(kind, spec)), "kubernetes_manifest")
		if len(got) != 1 {
			t.Errorf("%s: %d containers", kind, len(got))
			continue
		}
		if d := cmp.Diff(want, got[0].Input.Resource); d != "" {
			t.Errorf("%s: %s", kind, d)
		}
	}
}

func TestAPodThatIsNotKnownIsNotTakenForASafeOne(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"resource \"kubernetes_manifest\" \"x\" {\n manifest = var.m\n}",
		"resource \"kubernetes_manifest\" \"x\" {\n manifest = { kind = var.kind }\n}",
		"resource \"kubernetes_manifest\" \"x\" {\n manifest = yamldecode(file(\"pod.yaml\"))\n}",
		"resource \"kubernetes_manifest\" \"x\" {\n manifest = { kind = \"Pod\", spec = { containers = var.c } }\n}",
		"resource \"kubernetes_pod\" \"x\" {\n spec {\n dynamic \"container\" {\n for_each = var.c\n content {}\n }\n }\n}",
		"resource \"kubernetes_pod\" \"x\" {\n dynamic \"spec\" {\n for_each = var.c\n content {}\n }\n}",
	} {
		items, seen := read(t, write(t, map[string]string{"main.tf": text}), Options{})
		if len(items) != 1 || seen.Known != 1 || len(items[0].Parts) != 1 || len(items[0].Parts[0].Input.Unknown) < 5 {
			t.Errorf("%s\ngives %d items", text, len(items))
		}
	}
	items, seen := read(t, write(t, map[string]string{"main.tf": "resource \"kubernetes_manifest\" \"x\" {\n manifest = { kind = \"ConfigMap\" }\n}"}), Options{})
	if len(items) != 0 || seen.Known != 0 {
		t.Errorf("a ConfigMap is judged: %+v", items)
	}
}

func TestEngines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]policy.Provider{
		`provider "docker" {}`:                                                             {},
		`provider "docker" { host = "tcp://h:2375" }`:                                      {Endpoint: new("tcp://h:2375")},
		"provider \"docker\" {\n host = \"tcp://h:2376\"\n cert_path = \"c\"\n}":           {Endpoint: new("tcp://h:2376"), TLS: new(true)},
		"provider \"kubernetes\" {\n host = \"https://h\"\n insecure = true\n}":            {Endpoint: new("https://h"), TLS: new(false)},
		`provider "kubernetes" { host = "https://h" }`:                                     {Endpoint: new("https://h"), TLS: new(true)},
		"provider \"sandboxio\" {\n docker {\n host = \"tcp://h:1\"\n plain = true\n }\n}": {Endpoint: new("tcp://h:1")},
		"provider \"sandboxio\" {\n docker {\n host = \"tcp://h:1\"\n }\n}":                {Endpoint: new("tcp://h:1"), TLS: new(true)},
	} {
		got := parts(t, text, "provider")
		if len(got) != 1 {
			t.Errorf("%s gives %+v", text, got)
			continue
		}
		if d := cmp.Diff(want, got[0].Input.Resource.Provider); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
	if got := parts(t, `provider "aws" {}`, "provider"); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	got := parts(t, `resource "docker_image" "i" {
  name = "x:1"
  build {
    context    = "."
    build_args = { TOKEN = "t", V = var.v }
    label      = { a = "b" }
  }
}`, "docker_image")
	if len(got) != 1 || len(got[0].Input.Resource.BuildArgs) != 2 || got[0].Input.Resource.Labels["a"] != "b" {
		t.Fatalf("got %+v", got)
	}
	if d := cmp.Diff([]string{`build_args["V"]`}, got[0].Input.Unknown); d != "" {
		t.Error(d)
	}
}

func TestQuantities(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]float64{"500m": 0.5, "2": 2, "1.5": 1.5, "1Gi": 1 << 30, "100M": 1e8, "1e3": 1000} {
		if got, ok := quantity(in, kubernetesUnits); !ok || got != want {
			t.Errorf("%s is %v, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "x", "-1", "0", "1Q", "m", "1 Gi x", "9e999"} {
		if got, ok := quantity(in, kubernetesUnits); ok {
			t.Errorf("%q is %v", in, got)
		}
	}
	if got := megabytes("1.5G"); got == nil || *got != 1536 {
		t.Errorf("got %v", got)
	}
}

func FuzzQuantity(f *testing.F) {
	f.Add("500m")
	f.Add("1e3Gi")
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := quantity(s, kubernetesUnits); ok && !(n > 0) {
			t.Errorf("%q is %v", s, n)
		}
		if m := megabytes(s); m != nil && *m < 1 {
			t.Errorf("%q is %d MiB", s, *m)
		}
	})
}

func TestAPolicyBlockThatMakesTheJudgeMilderIsToldOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"provider \"sandboxio\" {\n policy {\n mode = \"advise\"\n }\n}":             "policy.mode",
		"provider \"sandboxio\" {\n policy {\n mode = var.mode\n }\n}":               "policy.mode",
		"provider \"sandboxio\" {\n policy {\n waivers = [{ id = \"x\" }]\n }\n}":    "policy.waivers",
		"provider \"sandboxio\" {\n policy {\n waivers = { x = {} }\n }\n}":          "policy.waivers",
		"provider \"sandboxio\" {\n policy {\n params = { max_pids = 9 }\n }\n}":     "policy.params",
		"provider \"sandboxio\" {\n policy {\n sources = { acme = \"x\" }\n }\n}":    "",
		"provider \"sandboxio\" {\n policy {\n mode = \"enforce\"\n }\n}":            "",
		"provider \"sandboxio\" {\n docker {}\n policy {\n mode = \"advise\"\n }\n}": "policy.mode",
	} {
		items, _ := read(t, write(t, map[string]string{"main.tf": text}), Options{})
		got := ""
		for _, i := range items {
			for _, w := range i.Weakens {
				got += w.Field
				if p := i.Place(i.Parts[0], w.Field); p.Line == 0 {
					t.Errorf("%s: no place for %s", text, w.Field)
				}
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestAReferenceToAScheduleThatIsWrittenOutIsKnown(t *testing.T) {
	t.Parallel()
	const schedule = "resource \"sandboxio_reaper_schedule\" \"s\" {\n name = %s\n interval = \"5m\"\n %s\n}\n"
	for _, c := range []struct{ name, schedule, more, reaper, want string }{
		{"its name", `"sweep"`, "", "sandboxio_reaper_schedule.s.name", "sweep"},
		{"its name in a text", `"sweep"`, "", `"${sandboxio_reaper_schedule.s.name}"`, "sweep"},
		{"a name that is not written out", "var.n", "", "sandboxio_reaper_schedule.s.name", "?"},
		{"one of several", `"sweep"`, "count = 2", "sandboxio_reaper_schedule.s[0].name", "?"},
		{"one of several by key", `"sweep"`, "for_each = var.all", `sandboxio_reaper_schedule.s["a"].name`, "?"},
		{"another schedule", `"sweep"`, "", "sandboxio_reaper_schedule.t.name", "?"},
		{"another attribute", `"sweep"`, "", "sandboxio_reaper_schedule.s.id", "?"},
		{"a choice", `"sweep"`, "", "var.x ? sandboxio_reaper_schedule.s.name : null", "?"},
	} {
		text := strings.Replace(strings.Replace(schedule, "%s", c.schedule, 1), "%s", c.more, 1) +
			"resource \"sandboxio_template\" \"t\" {\n name = \"t\"\n reaper = " + c.reaper + "\n}\n"
		in := parts(t, text, "sandboxio_template")[0].Input
		got := "?"
		if !slices.Contains(in.Unknown, "reaper") && in.Resource.Reaper != nil {
			got = *in.Resource.Reaper
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestASetThatTheProviderNamesIsToldOf(t *testing.T) {
	t.Parallel()
	block := func(s string) string { return "provider \"sandboxio\" {\n policy {\n " + s + "\n }\n}" }
	for text, want := range map[string]string{
		block(`sources = { acme = "${path.module}/x", web = "y" }`):              `policy.sources["acme"] acme|policy.sources["web"] web|`,
		block(`bundles = { acme = { file = "a.tar.gz", key = file("k.pub") } }`): `policy.bundles["acme"] acme|`,
		block(`sources = var.sets`):                                              "policy.sources |",
		block(`sources = {}`):                                                    "",
		block(`mode = "enforce"`):                                                "",
	} {
		items, _ := read(t, write(t, map[string]string{"main.tf": text}), Options{})
		if got := setsOf(t, items, true); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	// The JSON of a plan tells no names where a member refers to anything; the
	// text does.
	plan := `{"format_version":"1.2","planned_values":{},"resource_changes":[],"configuration":{"provider_config":{"sandboxio":{"name":"sandboxio","expressions":{"policy":[{"sources":{"references":["path.module"]}}]}}}}}`
	dir := write(t, map[string]string{"plan.json": plan, "tf/main.tf": block(`sources = { acme = "${path.module}/x" }`)})
	items, _ := read(t, filepath.Join(dir, "plan.json"), Options{})
	if got := setsOf(t, items, false); got != "policy.sources |" {
		t.Errorf("without the text: %q", got)
	}
	items, _ = read(t, filepath.Join(dir, "plan.json"), Options{Source: filepath.Join(dir, "tf")})
	if got := setsOf(t, items, true); got != `policy.sources["acme"] acme|` {
		t.Errorf("with the text: %q", got)
	}
}

func setsOf(t *testing.T, items []Item, placed bool) (out string) {
	t.Helper()
	for _, i := range items {
		for _, s := range i.Sets {
			out += s.Field + " " + s.Name + "|"
			flag := "--policy NAME"
			if s.Name != "" {
				flag = "--policy " + s.Name
			}
			if p := i.Place(i.Parts[0], s.Field); (p.Line != 0) != placed || !strings.Contains(s.Message, flag) {
				t.Errorf("%s: at %+v: %s", s.Field, p, s.Message)
			}
		}
	}
	return out
}

// A plan sorts the members of a set; the text has them as they were written.
func TestAMemberOfASetIsFoundByItsValue(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"main.tf": `resource "docker_container" "c" {
  name  = "c"
  image = "i"
  env   = ["B=2", "A=1", var.more]
  volumes {
    host_path      = "/srv"
    container_path = "/a"
  }
  volumes {
    host_path      = "/etc"
    container_path = var.path
    read_only      = true
  }
}
`,
		"plan.json": jsonPlan(`{"address":"docker_container.c","mode":"managed","type":"docker_container","name":"c","change":{"actions":["create"],"before":null,"after_unknown":{},"after_sensitive":{},
"after":{"image":"i","env":["A=1","B=2","C=3"],"volumes":[{"host_path":"/etc","container_path":"/b","read_only":true,"volume_name":null,"from_container":null},{"host_path":"/srv","container_path":"/a","read_only":null,"volume_name":null,"from_container":null}]}}}`),
	})
	items, _ := read(t, filepath.Join(dir, "plan.json"), Options{Source: dir})
	if len(items) != 1 || items[0].Problem != nil {
		t.Fatalf("got %+v", items)
	}
	for field, want := range map[string]int{
		"mounts[0].source": 10, "mounts[1].source": 6, `env["A"]`: 4, `env["C"]`: 4, "mounts[1]": 5, "process.privileged": 1,
	} {
		if got := items[0].Place(items[0].Parts[0], field).Line; got != want {
			t.Errorf("%s is at line %d, want %d", field, got, want)
		}
	}
	if got := items[0].Place(items[0].Parts[0], `env["A"]`); got.Column != 19 || !got.Exact {
		t.Errorf("A is at %+v", got)
	}
	if got := items[0].Place(items[0].Parts[0], `env["C"]`); got.Exact && got.Column < 26 {
		t.Errorf("C is at %+v", got)
	}
}
