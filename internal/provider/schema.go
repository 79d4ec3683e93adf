package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
)

func (p *sandboxioProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Sandboxes for code that nobody has read: closed by default, judged by policy in every plan, ended by a deadline. " +
			"Configuring the provider connects to nothing; each backend connects when it is first used.",
		Attributes: map[string]schema.Attribute{
			"default_backend": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "The backend of resources that name none. Default: the only one configured, and `docker` when none is. Required with more than one.",
			},
		},
		Blocks: map[string]schema.Block{
			"docker": schema.SingleNestedBlock{
				MarkdownDescription: "A Docker Engine. Default: the engine that the docker command would use, when no backend is configured.",
				Attributes: map[string]schema.Attribute{
					"host": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "The engine, as `unix:///var/run/docker.sock` or `tcp://host:2376`. Default: `DOCKER_HOST`, then the docker command's context, then the known sockets.",
					},
					"certs":         schema.StringAttribute{Optional: true, MarkdownDescription: "Directory with `ca.pem`, `cert.pem` and `key.pem` for a `tcp://` host. Default: `DOCKER_CERT_PATH`."},
					"plain":         schema.BoolAttribute{Optional: true, MarkdownDescription: "Allow a `tcp://` host without TLS elsewhere than on loopback. Whoever reaches such an engine is root on its host. Default: `false`."},
					"image":         schema.StringAttribute{Optional: true, MarkdownDescription: "The image of templates that name none, by digest. Default: none."},
					"runtime":       schema.StringAttribute{Optional: true, MarkdownDescription: "The engine's runtime that sandboxes run on, as `runsc` for gVisor, whose tier `user-kernel` is probed from inside each sandbox. Default: the engine's own."},
					"storage_quota": schema.BoolAttribute{Optional: true, MarkdownDescription: "The engine can cap a container's root, so that `profile = \"compat\"` may be offered; verified in each sandbox. Default: `false`."},
					"address_pool":  schema.StringAttribute{Optional: true, MarkdownDescription: "The range out of which each sandbox with an allowlist gets two networks of eight addresses, as `10.64.0.0/12`. Default: `198.18.0.0/15`, which is nobody's local network."},
					"uplink":        schema.StringAttribute{Optional: true, MarkdownDescription: "A network of the engine by which all gateways go out; what else is on it are their neighbours. Default: a network of its own for each gateway."},
					"dns":           schema.StringAttribute{Optional: true, MarkdownDescription: "The name server that gateways ask, as `192.0.2.53` or `192.0.2.53:5353`. Default: the first of the engine's host, or the engine where that one is on the host itself."},
					"keeper_socket": schema.StringAttribute{Optional: true, MarkdownDescription: "The engine's socket on the engine's own host, for reaper schedules. Default: the socket in `host`; none for a `tcp://` host."},
					"keeper_image":  schema.StringAttribute{Optional: true, MarkdownDescription: "The image that reaper schedules run. Default: the one that `sandboxio setup docker` made for this release."},
				},
			},
			"memory": schema.SingleNestedBlock{
				MarkdownDescription: "A simulated backend inside of the provider's process, for trying things out. It isolates nothing, runs no real programs and forgets everything when the process ends. Default: not configured.",
				Attributes: map[string]schema.Attribute{
					"world": schema.StringAttribute{Optional: true, MarkdownDescription: "Name of a world that everybody in one process shares. Default: the one without a name."},
				},
			},
			"policy": policyBlock(),
		},
	}
}
