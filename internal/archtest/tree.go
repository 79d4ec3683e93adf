package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// file is one source file of ours.
type file struct {
	name    string // from the root, with slashes
	dir     string // its package: "." or "./sandbox/driver"
	test    bool
	imports []string // ours as "./…" or "."
	lines   int
	syntax  *ast.File
	pos     *token.FileSet
}

// tree is the source of a module.
type tree struct {
	module string
	files  []*file
}

// readTree parses every Go file under root, whatever platform it is for. Other
// modules, testdata and hidden folders are left out, as the go command does.
func readTree(root, module string) (*tree, error) {
	t := &tree{module: module}
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if at != root && foreign(at, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(d.Name(), ".go"):
			return nil
		}
		source, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		return t.add(filepath.ToSlash(name), string(source))
	})
	return t, err
}

func foreign(dir, name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || slices.Contains([]string{"testdata", "vendor", "bin", "dist"}, name) {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func (t *tree) add(name, source string) error {
	pos := token.NewFileSet()
	syntax, err := parser.ParseFile(pos, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := &file{
		name: name, dir: ours(path.Dir(name)), test: strings.HasSuffix(name, "_test.go"),
		lines: strings.Count(source, "\n"), syntax: syntax, pos: pos,
	}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		f.imports = append(f.imports, t.localise(imported))
	}
	t.files = append(t.files, f)
	return nil
}

func ours(dir string) string {
	if dir == "." {
		return dir
	}
	return "./" + dir
}

// localise writes an import of our own as a pattern does.
func (t *tree) localise(imported string) string {
	if imported == t.module {
		return "."
	}
	if rest, ok := strings.CutPrefix(imported, t.module+"/"); ok {
		return "./" + rest
	}
	return imported
}

// code is the files that are not tests.
func (t *tree) code() []*file {
	return slices.DeleteFunc(slices.Clone(t.files), func(f *file) bool { return f.test })
}

// dirs are our packages, those of nothing but tests included.
func (t *tree) dirs() []string {
	var dirs []string
	for _, f := range t.files {
		dirs = append(dirs, f.dir)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
