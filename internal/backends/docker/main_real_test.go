//go:build dockertest

package docker

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// TestMain lets the test's program be the owner of a sandbox in a process of
// its own, to be killed.
func TestMain(m *testing.M) {
	if token := os.Getenv("SANDBOXIO_TEST_OWNER"); token != "" {
		if err := own(token); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// own creates a sandbox with processes that try to outlive everything, says
// its id, and waits to be killed.
func own(token string) error {
	ctx := context.Background()
	b, err := Open(ctx, Options{Host: os.Getenv("SANDBOXIO_TEST_DOCKER")})
	if err != nil {
		return err
	}
	spec := testSpec(token)
	spec.Image = os.Getenv("SANDBOXIO_TEST_IMAGE")
	spec.Labels = map[string]string{"test": os.Getenv("SANDBOXIO_TEST_NAME")}
	if text := os.Getenv("SANDBOXIO_TEST_RULE"); text != "" {
		rule, err := driver.ParseRule(text)
		if err != nil {
			return err
		}
		if spec.Network.Egress, err = driver.Canonical([]driver.Rule{rule}); err != nil {
			return err
		}
	}
	sb, err := b.Create(ctx, spec)
	if err != nil {
		return err
	}
	_, err = sb.Start(ctx, driver.Cmd{Args: []string{"sh", "-c", `trap '' TERM HUP INT; setsid sh -c 'sleep 987 & sleep 987' & sleep 987`}, Timeout: driver.DefaultTimeout})
	if err != nil {
		return err
	}
	fmt.Println(sb.Status().ID)
	select {}
}
