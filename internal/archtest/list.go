package archtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// listed is what we read of go list.
type listed struct {
	ImportPath string
	Name       string
	Imports    []string
	Deps       []string
}

// goList asks the go command what each of our packages compiles on a platform:
// all packages that takes, others' included. Ours are written as patterns do.
func goList(ctx context.Context, root, goos string, t *tree) ([]listed, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Name,Imports,Deps", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s: %w\n%s", goos, err, stderr.Bytes())
	}
	var packages []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		p.ImportPath = t.localise(p.ImportPath)
		for _, names := range [][]string{p.Imports, p.Deps} {
			for i, name := range names {
				names[i] = t.localise(name)
			}
		}
		packages = append(packages, p)
	}
}
