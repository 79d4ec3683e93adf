package policy

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestABareAddressIsItsNarrowestPrefix(t *testing.T) { // M160
	for text, want := range map[string]string{
		"192.168.1.254": "192.168.1.254/32", "2001:db8::1": "2001:db8::1/128", "::ffff:10.0.0.1": "10.0.0.1/32", "10.1.2.3/8": "10.0.0.0/8",
		"2001:db8::ffff/32": "2001:db8::/32",
	} {
		e, err := (Egress{CIDR: &text}).canonical(path{"network", "egress", 0}, nil)
		if err != nil || *e.CIDR != want {
			t.Errorf("%s: %v, %v", text, err, e.CIDR)
		}
	}
}

func TestTwoAddressesAreNoNetwork(t *testing.T) { // M160: merging two of one address made it a /24
	r := Resource{Network: Network{Egress: []Egress{{CIDR: new("192.168.1.254")}, {CIDR: new("192.168.1.254")}, {CIDR: new("2001:db8::1")}}}}
	r, err := complete(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := factsOf(r, nil)
	if *f.Egress[0].Bits != 32 || *f.Egress[1].Bits != 32 || *f.Egress[2].Bits != 128 || f.Share != (Share{}) {
		t.Errorf("%+v", f)
	}
}

func TestShareOfAllAddresses(t *testing.T) {
	for _, tc := range []struct {
		prefixes   string
		ipv4, ipv6 int64
	}{
		{"", 0, 0},
		{"0.0.0.0/0", 1000, 0},
		{"::/0", 0, 1000},
		{"2000::/3", 0, 1000},
		{"fc00::/7", 0, 0},
		{"0.0.0.0/1 128.0.0.0/1", 1000, 0},
		{"0.0.0.0/1 0.0.0.0/1 64.0.0.0/2", 500, 0},
		{"0.0.0.0/2 64.0.0.0/3 96.0.0.0/4", 437, 0},
		{"10.0.0.0/8", 3, 0},
		{"198.51.100.0/24 203.0.113.7/32", 0, 0},
		{"128.0.0.0/1 2000::/4", 500, 500},
	} {
		var prefixes []netip.Prefix
		for p := range strings.FieldsSeq(tc.prefixes) {
			prefixes = append(prefixes, netip.MustParsePrefix(p))
		}
		if got := shareOf(prefixes); got != (Share{tc.ipv4, tc.ipv6}) {
			t.Errorf("%s: %+v", tc.prefixes, got)
		}
	}
}

func TestShareOfManyPrefixesIsQuick(t *testing.T) {
	var prefixes []netip.Prefix
	for i := range 20_000 { // as many as fit into a manifest
		prefixes = append(prefixes, netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(i >> 8), byte(i), 0, 1}), 32))
	}
	began := time.Now()
	if got := shareOf(prefixes); got.IPv4 > 1 {
		t.Errorf("%+v", got)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func FuzzShare(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 128, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var prefixes []netip.Prefix
		for len(raw) >= 5 && len(prefixes) < 16 {
			p, err := netip.AddrFrom4([4]byte(raw[:4])).Prefix(int(raw[4]) % 33)
			if err != nil {
				t.Fatal(err)
			}
			prefixes, raw = append(prefixes, p), raw[5:]
		}
		all := share(prefixes, allIPv4)
		if all < 0 || all > 1000 {
			t.Fatalf("%d", all)
		}
		for i := range prefixes {
			if less := share(slices.Delete(slices.Clone(prefixes), i, i+1), allIPv4); less > all {
				t.Errorf("without %s it is %d, with it %d", prefixes[i], less, all)
			}
		}
	})
}

func TestHostsAndTheirClasses(t *testing.T) {
	for host, want := range map[string]string{
		"example.com":                    "",
		"metadata.google.internal":       "metadata",
		"*.google.internal":              "metadata",
		"*.internal":                     "host-gateway metadata",
		"x.metadata.google.internal":     "",
		"notmetadata.google.internal":    "",
		"host.docker.internal":           "host-gateway",
		"*.docker.internal":              "host-gateway",
		"*.host.docker.internal":         "",
		"a.localhost":                    "loopback",
		"*.localhost":                    "host-gateway loopback",
		"*.a.localhost":                  "loopback",
		"localtest.me":                   "loopback",
		"db.localtest.me":                "loopback",
		"*.lvh.me":                       "loopback",
		"169-254-169-254.sslip.io":       "loopback",
		"127.0.0.1.nip.io":               "loopback",
		"nip.io":                         "",
		"docker.internal.evil.example":   "",
		"instance-data.ec2.internal":     "metadata",
		"*.ec2.internal":                 "metadata",
		"xhost.docker.internal":          "",
		"metadata.google.internal.x.org": "",
	} {
		if got := strings.Join(hostFacts(host).Classes, " "); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}

func TestWildcardsAndWhoseNamesTheyCover(t *testing.T) {
	for base, want := range map[string]string{
		"com": "tld", "internal": "tld", "co.uk": "public-suffix", "kobe.jp": "public-suffix", "example.com": "domain", "example.co.uk": "domain",
		"github.io": "shared-suffix", "acme.github.io": "domain", "amazonaws.com": "shared-suffix", "s3.amazonaws.com": "shared-suffix",
		"eu-west-1.amazonaws.com": "shared-suffix", "s3.eu-west-1.amazonaws.com": "shared-suffix", "bucket.s3.eu-west-1.amazonaws.com": "domain",
		"googleapis.com": "shared-suffix", "blob.core.windows.net": "shared-suffix", "core.windows.net": "shared-suffix",
		"acme.blob.core.windows.net": "domain", "vercel.app": "shared-suffix", "acme.vercel.app": "domain", "acme-internal.example": "domain",
	} {
		if got := wildcardOver(base); got != want {
			t.Errorf("*.%s: %q, want %q", base, got, want)
		}
	}
}

func TestNamesOfCredentials(t *testing.T) {
	for name := range strings.FieldsSeq(`DB_PASS DB_PWD DOCKER_AUTH GITHUB_TOKEN github_token githubToken AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN API_KEY API_KEY_2
		apiKey OPENAI_API_KEY DB_PASSWORD DB_PASSWORD1 PGPASSWORD MYSQL_PWD SSH_PRIVATE_KEY CLIENT_SECRET GH_PAT TOKEN SECRET PASSWORD KEY`) {
		if !credentialName(name) {
			t.Errorf("%s passes", name)
		}
	}
	for name := range strings.FieldsSeq(`LANG PATH PWD OLDPWD HOME MAX_TOKENS TOKENIZERS_PARALLELISM SECRET_NAME PASSWORD_MIN_LENGTH SSH_PUBLIC_KEY
		MONKEY KEYBOARD DATABASE_URL PATH_PATTERN`) {
		if credentialName(name) {
			t.Errorf("%s is taken for a credential", name)
		}
	}
}

func TestShapesOfCredentials(t *testing.T) {
	for value, want := range map[string]string{
		"x_AKIAABCDEFGHIJKLMNOP":                             "aws_access_key_id",
		"AKIAABCDEFGHIJKLMNOP":                               "aws_access_key_id",
		"key=ASIAABCDEFGHIJKLMNOP;":                          "aws_access_key_id",
		"ghp_" + strings.Repeat("a1", 18):                    "github_token",
		"github_pat_" + strings.Repeat("a1", 20):             "github_token",
		"glpat-" + strings.Repeat("a1", 10):                  "gitlab_token",
		"xoxb-1234567890-abcdef":                             "slack_token",
		"sk_live_" + strings.Repeat("a1", 12):                "stripe_key",
		"sk-proj-" + strings.Repeat("a1", 20):                "sk_key",
		"AIza" + strings.Repeat("a1b2c", 7):                  "google_api_key",
		"npm_" + strings.Repeat("a1", 18):                    "npm_token",
		"-----BEGIN OPENSSH PRIVATE KEY-----":                "private_key",
		"-----BEGIN PRIVATE KEY-----":                        "private_key",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln":          "json_web_token",
		"https://x.blob/y?sv=1&sig=abcdefghijklmnopqrst%3D":  "azure_signature",
		"Authorization: Bearer abcdefghijklmnop0123":         "authorization_header",
		"e2b_" + strings.Repeat("0a", 20):                    "sandbox_provider_key",
		"q8ZpT3vXw9LmN2bR5cKd":                               highEntropy,
		"":                                                   "",
		"eu-west-1":                                          "",
		"/usr/lib/python3.12/site-packages:/opt/App1/Lib":    "",
		"-----BEGIN CERTIFICATE-----":                        "",
		"0123456789abcdef0123456789abcdef":                   "", // a digest
		"sha256:" + strings.Repeat("0123456789abcdef", 4):    "",
		"550e8400-e29b-41d4-a716-446655440000":               "",
		"the quick brown Fox jumps over 13 lazy dogs":        "",
		"task-force-risk-assessment":                         "",
		"AAAAAAAAAAAAAAAAAAAAaaaaaaaaaaaaaaaaaaaaa111111111": "",
	} {
		if got := detect(value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

func TestUsersInURLs(t *testing.T) {
	for value, want := range map[string]bool{
		"postgres://a:b@db/x": true, "https://tok@git.example": true, "x=redis://:pw@h:6379": true, "postgres://a:%zz@db": true,
		"postgres://a:p/w@db": false, // no parser sees a user there either
		"postgres://db/x":     false, "ssh://git@git.example/x": false, "ssh://me@engine.example.com": false, "ssh://me:pw@engine.example.com": true, "https://git@git.example/x": false, "https://me@git.example/x": true, "mail me@example.com": false, "https://x/y?z=a@b": false, "https://x/@scope/y": false, "": false,
	} {
		if got := hasUserinfo(value); got != want {
			t.Errorf("%q: %t", value, got)
		}
	}
}
