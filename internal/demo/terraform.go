package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/examples"
)

// terraform runs the real command on copies of the examples, with the
// provider that lies beside this program.
type terraform struct {
	path    string
	dir     string // holds a copy of each example
	env     []string
	vars    []string
	applied bool // quickstart may hold something
}

func newTerraform(ctx context.Context, o Options, backend string) (*terraform, error) {
	path, err := exec.LookPath("terraform")
	if err != nil {
		return nil, errors.New("terraform is not on PATH: install Terraform 1.11 or newer")
	}
	provider := filepath.Join(filepath.Dir(o.CLI), "terraform-provider-sandboxio")
	if _, err := os.Stat(provider); err != nil {
		return nil, fmt.Errorf("the provider is not beside this program: %w (run make build)", err)
	}
	dir, err := os.MkdirTemp("", "sandboxio-demo-")
	if err != nil {
		return nil, err
	}
	t := &terraform{path: path, dir: dir, vars: []string{"-var", "backend=" + backend}}
	if o.Image != "" {
		t.vars = append(t.vars, "-var", "image="+o.Image)
	}
	tfrc := filepath.Join(dir, "dev.tfrc")
	t.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+tfrc, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_LOG=")
	config := fmt.Sprintf("provider_installation {\n  dev_overrides { \"sandboxio/sandboxio\" = %q }\n  direct {}\n}\n", filepath.Dir(provider))
	if err := os.WriteFile(tfrc, []byte(config), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for _, name := range []string{"quickstart", "insecure"} {
		sub, err := fs.Sub(examples.Files, name)
		if err == nil {
			err = os.CopyFS(filepath.Join(dir, name), sub)
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	_, err = TerraformVersion(ctx, t.path)
	return t, err
}

// TerraformVersion tells the version of the Terraform at path, and refuses one
// that lacks write-only attributes.
func TerraformVersion(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, "version", "-json").Output()
	if err != nil {
		return "", fmt.Errorf("terraform version: %w", err)
	}
	var v struct {
		Version string `json:"terraform_version"`
	}
	if err := json.Unmarshal(out[max(0, bytes.IndexByte(out, '{')):], &v); err != nil {
		return "", fmt.Errorf("terraform version: %w", err)
	}
	parts := strings.SplitN(v.Version, ".", 3)
	major, _ := strconv.Atoi(parts[0])
	minor := 0
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	if major < 1 || major == 1 && minor < 11 {
		return "", fmt.Errorf("terraform %s is too old: install 1.11 or newer", v.Version)
	}
	return v.Version, nil
}

// run runs one command in the copy of an example and gives all it wrote.
func (t *terraform) run(ctx context.Context, example, command string, args ...string) (string, error) {
	if command == "apply" {
		t.applied = true
	}
	args = append([]string{"-chdir=" + filepath.Join(t.dir, example), command}, args...)
	args = append(args, t.vars...)
	cmd := exec.CommandContext(ctx, t.path, args...)
	cmd.Env = t.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (t *terraform) output(ctx context.Context, example, name string) (string, error) {
	cmd := exec.CommandContext(ctx, t.path, "-chdir="+filepath.Join(t.dir, example), "output", "-raw", name)
	cmd.Env = t.env
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("terraform output %s: %w", name, err)
	}
	return string(out), nil
}

// close destroys what a failed demo had applied, and removes the copies.
func (t *terraform) close(ctx context.Context) error {
	if t.applied {
		if out, err := t.run(ctx, "quickstart", "destroy", "-auto-approve", "-input=false", "-no-color"); err != nil {
			return fmt.Errorf("destroy after a failure, state kept in %s: %w\n%s", t.dir, err, out)
		}
	}
	return os.RemoveAll(t.dir)
}
