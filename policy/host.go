package policy

import (
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// namedHosts are host names that lead to a protected place. Sources: the
// clouds' documentation of their metadata services; the documentation of the
// container engines and virtual machines that give the host a name inside.
var namedHosts = map[string][]string{
	"metadata": {
		"instance-data.ec2.internal", "metadata.google.internal", "metadata.goog", "metadata.azure.internal",
		"metadata.packet.net", "metadata.platformequinix.com", "metadata.tencentyun.com",
	},
	"host-gateway": {
		"gateway.docker.internal", "host.containers.internal", "host.docker.internal", "host.k3d.internal", "host.lima.internal",
		"host.minikube.internal", "host.orb.internal", "host.rancher-desktop.internal", "docker.for.mac.host.internal",
		"docker.for.mac.localhost", "docker.for.win.localhost", "kubernetes.docker.internal", "vm.docker.internal",
	},
	"loopback": {
		"localhost.localdomain", "localtest.me", "lvh.me", "vcap.me", "*.localhost", "*.localtest.me", "*.lvh.me", "*.vcap.me",
		"*.nip.io", "*.sslip.io", "*.xip.io", // wherever the name itself says
	},
}

// sharedSuffixes are domains below which strangers own names, beyond those in
// the public suffix list.
var sharedSuffixes = []string{
	"amazonaws.com", "azure.com", "azureedge.net", "azurewebsites.net", "cloudapp.net", "cloudfront.net", "digitaloceanspaces.com",
	"fastly.net", "githubusercontent.com", "googleapis.com", "googleusercontent.com", "herokuapp.com", "netlify.app", "ngrok.io",
	"onrender.com", "pages.dev", "r2.dev", "run.app", "trycloudflare.com", "vercel.app", "windows.net", "workers.dev",
}

// uploadHosts take what anybody sends, and show it to whoever asks: files,
// snippets, messages, requests.
var uploadHosts = []string{
	"0x0.st", "api.telegram.org", "bitbucket.org", "codeberg.org", "codepen.io", "codesandbox.io", "discord.com", "*.discord.com", "discordapp.com",
	"*.discordapp.com", "docs.google.com", "dropbox.com", "*.dropbox.com", "dropboxapi.com", "*.dropboxapi.com", "dpaste.com", "drive.google.com", "file.io",
	"gist.github.com", "gitee.com", "github.com", "api.github.com", "uploads.github.com", "*.githubusercontent.com", "gitlab.com", "*.gitlab.com",
	"graph.microsoft.com", "hooks.slack.com", "huggingface.co", "*.huggingface.co", "mega.nz", "notion.so", "*.notion.so", "pastebin.com", "paste.ee",
	"pipedream.net", "*.pipedream.net", "rentry.co", "replit.com", "requestbin.com", "slack.com", "*.slack.com", "t.me", "transfer.sh", "webhook.site",
	"wetransfer.com", "*.wetransfer.com",
}

// hostFacts tells where a canonical host rule leads.
func hostFacts(host string) EgressFacts {
	f := EgressFacts{Field: "host", Target: host, Classes: []string{}}
	for class, names := range namedHosts {
		if slices.ContainsFunc(names, func(n string) bool { return hostsMeet(host, n) }) {
			f.Classes = append(f.Classes, class)
		}
	}
	slices.Sort(f.Classes)
	if base, ok := strings.CutPrefix(host, "*."); ok {
		f.Wildcard = new(wildcardOver(base))
	}
	if f.Wildcard == nil || *f.Wildcard == "domain" { // broader ones are said to be so
		f.Uploads = slices.ContainsFunc(uploadHosts, func(n string) bool { return hostsMeet(host, n) })
	}
	return f
}

// hostsMeet reports whether some name matches both rules.
func hostsMeet(a, b string) bool {
	below, wild := strings.CutPrefix(a, "*.")
	other, also := strings.CutPrefix(b, "*.")
	switch {
	case wild && also:
		return below == other || strings.HasSuffix(below, "."+other) || strings.HasSuffix(other, "."+below)
	case wild:
		return strings.HasSuffix(b, "."+below)
	case also:
		return strings.HasSuffix(a, "."+other)
	}
	return a == b
}

// wildcardOver says whose names "*.base" covers.
func wildcardOver(base string) string {
	suffix, icann := publicsuffix.PublicSuffix(base)
	if below, managed := publicsuffix.PublicSuffix("x." + base); below == "x."+base {
		suffix, icann = base, managed // as kobe.jp, below which every name is a suffix
	}
	switch {
	case !strings.Contains(base, "."):
		return "tld"
	case suffix == base && icann:
		return "public-suffix"
	case suffix == base, slices.Contains(sharedSuffixes, base):
		return "shared-suffix"
	}
	for _, s := range sharedSuffixes {
		// Above a shared suffix everything is shared, and below one too, down
		// to the suffix of the tenants' names where the list knows it.
		tenant := suffix == s || strings.HasSuffix(suffix, "."+s)
		if strings.HasSuffix(s, "."+base) || strings.HasSuffix(base, "."+s) && !tenant {
			return "shared-suffix"
		}
	}
	return "domain"
}
