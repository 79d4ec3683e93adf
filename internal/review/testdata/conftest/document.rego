# What Go does for our rules, in Rego, so that conftest can ask the very same
# rules of a plan: the document of each template, and the facts that they read.
# Where it is simpler than the Go code, that is in conftest's favour: no public
# suffixes, no entropy, no positions, no unknown or sensitive values.
package bench

document(rc) := {"kind": "template", "stage": "file", "address": rc.address, "resource": resource(rc.change.after), "facts": facts(rc.change.after), "graph": null, "unknown": [], "sensitive": []}

resource(a) := {
	"backend": a.backend, "image": image(a.image), "isolation": "container", "trust": a.trust, "trust_reason": a.trust_reason,
	"multi_tenant": a.multi_tenant, "profile": a.profile, "lifetime_seconds": to_number(trim_suffix(a.lifetime, "s")), "resources": a.resources,
	"network": object.union(object.remove(a.network_policy, ["egress"]), {"default": "deny", "publish": [], "dns": [], "joined": [], "egress": a.network_policy.egress}),
	"env": [{"name": name} | some name, _ in a.env], "secrets": a.secrets, "labels": a.labels, "reaper": a.reaper, "detached": false, "owner": null, "tenant": null,
	"schedule": {"interval_seconds": null, "cron": null, "max_age_seconds": null, "dry_run": null},
	"process": {
		"user": null, "non_root": null, "privileged": false, "no_new_privileges": null, "read_only_root": null, "cap_add": [], "cap_drop": [], "seccomp": null,
		"apparmor": null, "selinux": null, "unmasked_proc": null, "host_namespaces": [], "devices": [], "sysctls": [], "runtime": null,
	},
	"mounts": [], "restart": "no", "service_account_token": false, "build_args": [], "files": [], "provider": {"endpoint": null, "tls": null},
}

image(ref) := {"ref": ref, "registry": split(ref, "/")[0], "repository": split(ref, "@")[0], "tag": null, "digest": digest(ref), "pinned": contains(ref, "@sha256:"), "insecure": false}

digest(ref) := split(ref, "@")[1] if contains(ref, "@")

digest(ref) := null if not contains(ref, "@")

facts(a) := {
	"egress": [egress(e) | some e in a.network_policy.egress], "share": share(a.network_policy.egress), "env": [{"credential_name": credential_name(n)} | some n, _ in a.env],
	"credentials": [{"path": p, "detector": d} | some p, t in texts(a); some d, re in detectors; regex.match(re, t)],
	"userinfo": [p | some p, t in texts(a); regex.match(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#"'<>]*@`, t)],
	"build_args": [], "mounts": [], "publish": [], "endpoint": {"scheme": "", "local": true},
}

texts(a) := object.union_n([
	{sprintf("env[%q]", [n]): v | some n, v in a.env}, {sprintf("labels[%q]", [n]): v | some n, v in a.labels},
	{sprintf("network.egress[%d].why", [i]): e.why | some i, e in a.network_policy.egress; e.why != null}, {"trust_reason": a.trust_reason},
])

egress(e) := {
	"field": "cidr", "target": e.cidr, "classes": [c | some c, ranges in classes; some r in ranges; net.cidr_intersects(r, e.cidr)], "family": "ipv4",
	"bits": to_number(split(e.cidr, "/")[1]), "wildcard": null, "uploads": false, "explained": e.why != null,
} if e.cidr != null

egress(e) := {
	"field": "host", "target": e.host, "classes": [c | some c, hosts in names; some h in hosts; endswith(e.host, h)], "family": null, "bits": null,
	"wildcard": wildcard(e.host), "uploads": uploads(e.host), "explained": e.why != null,
} if e.cidr == null

wildcard(h) := "tld" if regex.match(`^\*\.[^.]+$`, h)

wildcard(h) := "domain" if regex.match(`^\*\..+\..+$`, h)

wildcard(h) := null if not startswith(h, "*.")

uploads(h) if h in {"gist.github.com", "pastebin.com", "transfer.sh", "webhook.site", "discord.com", "api.telegram.org"}

uploads(h) := false if not h in {"gist.github.com", "pastebin.com", "transfer.sh", "webhook.site", "discord.com", "api.telegram.org"}

share(rules) := {"ipv4": sum([1000 | some e in rules; e.cidr == "0.0.0.0/0"]), "ipv6": 0}

credential_name(n) if regex.match(`(?i)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|APIKEY|SECRETKEY|ACCESSKEY|PRIVATEKEY|_KEY|_PAT|_PASS|_PWD|_AUTH)[0-9_]*$`, n)

credential_name(n) := false if not regex.match(`(?i)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|APIKEY|SECRETKEY|ACCESSKEY|PRIVATEKEY|_KEY|_PAT|_PASS|_PWD|_AUTH)[0-9_]*$`, n)

names := {"metadata": ["metadata.google.internal", "metadata", "instance-data"], "host-gateway": ["host.docker.internal", "gateway.docker.internal", "host.containers.internal"], "loopback": ["localhost"]}

classes := {
	"private": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"], "cgnat": ["100.64.0.0/10"], "loopback": ["127.0.0.0/8"], "link-local": ["169.254.0.0/16"],
	"metadata": ["169.254.169.254/32", "100.100.100.200/32", "168.63.129.16/32"], "multicast": ["224.0.0.0/4"], "unspecified": ["0.0.0.0/8"],
}

detectors := {
	"aws_access_key_id": `(?:^|[^A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?:[^A-Za-z0-9]|$)`, "private_key": `-----BEGIN [A-Z0-9 ]*PRIVATE KEY`,
	"json_web_token": `\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`, "github_token": `\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`,
	"gitlab_token": `\bgl(?:pat|dt|rt|ptt|cbt|oas)-[A-Za-z0-9_-]{20,}`, "slack_token": `\bx(?:ox[abeoprs]|app)-[A-Za-z0-9-]{10,}`,
	"stripe_key": `\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}`, "sk_key": `\bsk-[A-Za-z0-9_-]{20,}`, "google_api_key": `\bAIza[A-Za-z0-9_-]{35}`,
	"npm_token": `\bnpm_[A-Za-z0-9]{36}`, "pypi_token": `\bpypi-[A-Za-z0-9_-]{40,}`, "hugging_face_token": `\bhf_[A-Za-z0-9]{30,}`,
	"registry_token": `\bdckr_[a-z]+_[A-Za-z0-9_-]{20,}`, "sandbox_provider_key": `\b(?:e2b_|dtn_)[0-9a-f]{32,}`, "azure_signature": `(?i)[?&]sig=[A-Za-z0-9%+/=]{20,}`,
	"azure_account_key": `(?i)\bAccountKey=[A-Za-z0-9+/]{40,}`, "authorization_header": `(?i)\b(?:bearer|basic)\s+[A-Za-z0-9+/=._~-]{16,}`,
}
