package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
)

// outward are the calls that leave the process or start something. Made while a
// package is initialised, everyone who imports it pays, asked or not.
var outward = map[string][]string{
	"os":       {"Open", "OpenFile", "Create", "CreateTemp", "MkdirTemp", "ReadFile", "WriteFile", "ReadDir", "Stat", "Lstat", "Hostname", "Getwd", "Executable", "UserHomeDir", "UserCacheDir", "UserConfigDir"},
	"net":      {"Dial", "DialTimeout", "Listen", "ListenPacket", "LookupHost", "LookupIP", "LookupAddr", "LookupCNAME", "Interfaces", "InterfaceAddrs"},
	"net/http": {"Get", "Head", "Post", "PostForm", "ListenAndServe"},
	"net/rpc":  {"Dial", "DialHTTP"},
	"os/exec":  {"Command", "CommandContext", "LookPath"},
	"time":     {"AfterFunc", "NewTicker", "NewTimer", "Tick", "After", "LoadLocation"},
}

// initialisers finds init functions that call anything or start a goroutine,
// and package variables that look outward while they are made.
func initialisers(t *tree) []finding {
	var found []finding
	for _, f := range t.code() {
		report := func(p token.Pos, what string) {
			found = append(found, finding{f.pos.Position(p).String(), what})
		}
		for _, decl := range f.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" && calls(d.Body) {
					report(d.Pos(), "init calls; make it a function that someone asks for")
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR {
					for _, call := range outwardCalls(f.syntax, d) {
						report(call.Pos(), "a package variable looks outward while it is made")
					}
				}
			}
		}
	}
	return found
}

func calls(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.CallExpr, *ast.GoStmt:
			found = true
		}
		return !found
	})
	return found
}

// outwardCalls looks into a function literal only where it is called at once.
func outwardCalls(f *ast.File, decl ast.Node) []*ast.CallExpr {
	var found []*ast.CallExpr
	called := map[*ast.FuncLit]bool{}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return called[n]
		case *ast.CallExpr:
			if lit, ok := n.Fun.(*ast.FuncLit); ok {
				called[lit] = true
			}
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
				if pkg, ok := sel.X.(*ast.Ident); ok && slices.Contains(outward[importOf(f, pkg.Name)], sel.Sel.Name) {
					found = append(found, n)
				}
			}
		}
		return true
	})
	return found
}

// importOf is the path behind a package's name in a file.
func importOf(f *ast.File, name string) string {
	for _, spec := range f.Imports {
		at, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		local := path.Base(at)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == name {
			return at
		}
	}
	return ""
}

func generated(f *ast.File) bool { return ast.IsGenerated(f) }
