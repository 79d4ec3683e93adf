package policy

import (
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// detectors know credentials by their shape. Sources: the issuers'
// documentation of their token formats.
var detectors = []struct {
	name string
	re   *regexp.Regexp
}{
	{"aws_access_key_id", regexp.MustCompile(`(?:^|[^A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?:[^A-Za-z0-9]|$)`)},
	{"private_key", regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`)},
	{"json_web_token", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`)},
	{"github_token", regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`)},
	{"gitlab_token", regexp.MustCompile(`\bgl(?:pat|dt|rt|ptt|cbt|oas)-[A-Za-z0-9_-]{20,}`)},
	{"slack_token", regexp.MustCompile(`\bx(?:ox[abeoprs]|app)-[A-Za-z0-9-]{10,}`)},
	{"stripe_key", regexp.MustCompile(`\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}`)},
	{"sk_key", regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}`)},
	{"google_api_key", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}`)},
	{"npm_token", regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}`)},
	{"pypi_token", regexp.MustCompile(`\bpypi-[A-Za-z0-9_-]{40,}`)},
	{"hugging_face_token", regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}`)},
	{"registry_token", regexp.MustCompile(`\bdckr_[a-z]+_[A-Za-z0-9_-]{20,}`)},
	{"sandbox_provider_key", regexp.MustCompile(`\b(?:e2b_|dtn_)[0-9a-f]{32,}`)},
	{"azure_signature", regexp.MustCompile(`(?i)[?&]sig=[A-Za-z0-9%+/=]{20,}`)},
	{"azure_account_key", regexp.MustCompile(`(?i)\bAccountKey=[A-Za-z0-9+/]{40,}`)},
	{"authorization_header", regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+[A-Za-z0-9+/=._~-]{16,}`)},
}

// highEntropy is the detector for texts that only look random: a guess.
const highEntropy = "high_entropy"

// detect names the first detector that fires, "" when none does.
func detect(s string) string {
	for _, d := range detectors {
		if d.re.MatchString(s) {
			return d.name
		}
	}
	if looksRandom(s) {
		return highEntropy
	}
	return ""
}

var oneWord = regexp.MustCompile(`^[A-Za-z0-9+/=_-]{20,}$`)

// looksRandom reports whether s is one word of at least 20 characters, with
// capitals, small letters and digits, and 4 bits of entropy per character.
// Paths are not.
func looksRandom(s string) bool {
	if !oneWord.MatchString(s) || s[0] == '/' {
		return false
	}
	var upper, lower, digit bool
	var seen [128]float64
	for i := range len(s) {
		c := s[i]
		seen[c]++
		upper = upper || 'A' <= c && c <= 'Z'
		lower = lower || 'a' <= c && c <= 'z'
		digit = digit || '0' <= c && c <= '9'
	}
	var bits float64
	for _, n := range seen {
		if n > 0 {
			p := n / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return upper && lower && digit && bits >= 4
}

// credentialEndings end the names of variables that hold credentials.
var credentialEndings = []string{
	"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "APIKEY", "SECRETKEY", "ACCESSKEY", "PRIVATEKEY",
}

// credentialNames are others that tools read credentials from.
var credentialNames = []string{
	"AWS_ACCESS_KEY_ID", "DOCKER_AUTH_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS_JSON", "KEY", "NETRC", "PASS", "PAT", "PGPASSFILE",
}

// credentialName reports whether a variable is named like a credential:
// "GITHUB_TOKEN", "apiKey", "DB_PASSWORD_2".
func credentialName(name string) bool {
	n := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	n = strings.TrimRight(n, "0123456789_")
	switch {
	case strings.HasSuffix(n, "PUBLIC_KEY"):
		return false
	case slices.Contains(credentialNames, n), strings.HasSuffix(n, "_KEY"), strings.HasSuffix(n, "_PAT"), strings.HasSuffix(n, "_PASS"),
		strings.HasSuffix(n, "_PWD"), strings.HasSuffix(n, "_AUTH"):
		return true
	}
	return slices.ContainsFunc(credentialEndings, func(e string) bool { return strings.HasSuffix(n, e) })
}

var urlStart = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#"'<>]*@`)

// login reports whether the user of a URL is a name that says nothing: SSH has
// one always, and proves it by a key.
func login(u *url.URL) bool {
	_, password := u.User.Password()
	return !password && (u.User.Username() == "git" || slices.Contains([]string{"ssh", "git+ssh", "sftp"}, u.Scheme))
}

// hasUserinfo reports whether s holds a URL with a user or a password.
func hasUserinfo(s string) bool {
	for _, start := range urlStart.FindAllString(s, -1) {
		u, err := url.Parse(start)
		if err != nil || u.User != nil && !login(u) {
			return true // what cannot be parsed is taken for the worst
		}
	}
	return false
}
