package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// show has Terraform write a binary plan as JSON, into a file that has no name
// any more where the system allows that: it holds every value in clear. The
// caller closes it.
func show(ctx context.Context, plan, dir string, tofu bool) (*os.File, error) {
	names := []string{"terraform", "tofu"}
	if tofu {
		names = []string{"tofu", "terraform"}
	}
	var command string
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			command = found
			break
		}
	}
	if command == "" {
		return nil, &driver.Error{Code: driver.CodeInvalid, Op: "read the plan", Err: errors.New("a binary plan needs terraform on PATH, and there is none"),
			Hint: "install Terraform 1.11 or newer, or pass the plan as JSON: terraform show -json tf.plan > plan.json"}
	}
	plan, err := filepath.Abs(plan)
	if err != nil {
		return nil, err
	}
	out, err := os.CreateTemp("", "sandboxio-plan-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(out.Name()) // Windows refuses; discard does it then
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, command, "show", "-json", "-no-color", plan)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, &said
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "TF_LOG") && !strings.HasPrefix(kv, "TF_CLI_ARGS") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	if err := cmd.Run(); err != nil {
		discard(out)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &driver.Error{Code: driver.CodeInvalid, Op: "read the plan", Err: fmt.Errorf("%s show -json: %w: %s", filepath.Base(command), err, strings.TrimSpace(said.String())),
			Hint: "run it where the plan was made and terraform init was run, or name that directory with --source; or pass the plan as JSON"}
	}
	return out, nil
}

func discard(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}
