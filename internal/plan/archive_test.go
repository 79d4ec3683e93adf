package plan

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// archived makes an archive.
func archived(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range sortedKeys(files) {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(files[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAnArchiveTellsPlacesAndNothingElse(t *testing.T) {
	t.Parallel()
	raw := archived(t, map[string]string{
		"tfplan": "x", "tfconfig/m-/main.tf": rootText, "tfconfig/m-boxes/m.tf": modText, "tfconfig/m-boxes/notes.txt": "no", "tfconfig/m-boxes/../../../evil.tf": "no",
		"tfconfig/modules.json": `[{"Key":"","Dir":"."},{"Key":"boxes","Source":"./mod","Dir":"../shared/mod"}]`, "tfconfig/nonsense": "x", "other": "x",
		".terraform.lock.hcl": `provider "registry.opentofu.org/hashicorp/null" {}`,
	})
	s, tofu, err := readArchive(bytes.NewReader(raw), int64(len(raw)), "infra")
	if err != nil || !tofu {
		t.Fatal(err, tofu)
	}
	if got := shown(s.find([]string{"boxes"}, "sandboxio_template", "t", []any{"env", "A.B"})); got != "shared/mod/m.tf:4:5-4:16 exact called infra/main.tf:1" {
		t.Errorf("got %s", got)
	}
	if len(s.modules) != 2 || len(s.modules["boxes"].text) != 1 {
		t.Errorf("modules %v", s.modules)
	}
	if line, ok := s.Line(Place{File: "infra/main.tf"}, 10); !ok || !strings.Contains(line, "0.0.0.0/0") {
		t.Errorf("line %q", line)
	}
}

func TestAnArchiveWithoutModulesStillTellsValues(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"no configuration": {"tfplan": "x"}, "a broken list of modules": {"tfplan": "x", "tfconfig/modules.json": "{", "tfconfig/m-/main.tf": "nonsense {"},
	} {
		raw := archived(t, files)
		s, _, err := readArchive(bytes.NewReader(raw), int64(len(raw)), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p := s.find(nil, "a", "b", nil); p.File != "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestABombIsAnErrorAndNotMemory(t *testing.T) {
	t.Parallel()
	big := strings.Repeat(" ", 1<<20)
	files := map[string]string{"tfplan": "x"}
	for i := range 80 {
		files["tfconfig/m-/f"+strings.Repeat("x", i)+".tf"] = big
	}
	raw := archived(t, files)
	if _, _, err := readArchive(bytes.NewReader(raw), int64(len(raw)), ""); !errors.Is(err, errBomb) {
		t.Errorf("%d bytes that unpack to 80 MiB: %v", len(raw), err)
	}
	name := filepath.Join(t.TempDir(), "tf.plan")
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), name, Options{Backend: backends}); err == nil || !strings.Contains(err.Error(), "unpacks to more than 64 MiB") {
		t.Errorf("says %v", err)
	}
}

func FuzzArchive(f *testing.F) {
	f.Add(archived(f, map[string]string{"tfplan": "x", "tfconfig/m-/main.tf": rootText, "tfconfig/modules.json": `[{"Key":"","Dir":"."}]`}))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, _, err := readArchive(bytes.NewReader(raw), int64(len(raw)), "x")
		if err != nil {
			return
		}
		for key := range s.modules {
			s.modules[key].parse()
		}
		s.provider()
		s.engines()
	})
}
