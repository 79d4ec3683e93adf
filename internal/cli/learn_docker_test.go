//go:build dockertest

package cli_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/cli"
)

// On a real engine, a program of the image's own: what it tries by the proxy of
// its environment is learned, and refused.
func TestLearnOnARealEngine(t *testing.T) {
	host, image := os.Getenv("SANDBOXIO_TEST_DOCKER"), os.Getenv("SANDBOXIO_TEST_IMAGE")
	if host == "" || image == "" {
		t.Fatal("SANDBOXIO_TEST_DOCKER and SANDBOXIO_TEST_IMAGE are not set: make test starts an engine and sets them")
	}
	var out, errs bytes.Buffer
	code := cli.Main(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, "test", []string{
		"egress", "learn", "--backend", strings.Replace(host, "unix://", "docker://", 1), "--image", image, "--", "python3", "-c", `
import urllib.request
for u in ("https://pypi.example.com/simple", "http://169.254.169.254/latest"):
    try: print("reached", urllib.request.urlopen(u, timeout=10).read())
    except Exception as e: print(e)`})
	for _, want := range []string{`#   { host = "pypi.example.com", ports = [443] }, # 1 attempt`, "#   169.254.169.254, port 80: no-rules, metadata, 1 attempt"} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("it does not say %q", want)
		}
	}
	if code != 0 || strings.Contains(errs.String(), "reached") || strings.Count(errs.String(), "403 Forbidden")+strings.Count(errs.String(), "403: Forbidden") != 2 {
		t.Errorf("%d: %s\n%s", code, &out, &errs)
	}
}
