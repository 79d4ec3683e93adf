// Command vulncount reads the output of govulncheck -format json and fails on
// a known vulnerability that our code reaches in a module we chose.
//
// One in Go's own library is printed with the release that mends it, and does
// not fail: the toolchain is chosen by who builds, go.mod names the one that
// releases are built with.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

func main() {
	ours, err := count(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulncount:", err)
		os.Exit(1)
	}
	if ours > 0 {
		fmt.Printf("%d known vulnerabilities in modules, reached by our code\n", ours)
		os.Exit(1)
	}
}

type message struct {
	Config  *struct{} `json:"config"`
	Finding *finding  `json:"finding"`
}

type finding struct {
	OSV   string `json:"osv"`
	Fixed string `json:"fixed_version"`
	Trace []struct {
		Module   string `json:"module"`
		Version  string `json:"version"`
		Package  string `json:"package"`
		Function string `json:"function"`
	} `json:"trace"`
}

// count prints each vulnerability that is reached once, and counts those in
// modules. Output without govulncheck's own header is an error: a scan that
// did not happen found nothing.
func count(r io.Reader, w io.Writer) (ours int, err error) {
	dec := json.NewDecoder(r)
	scanned, seen := false, []string{}
	for {
		var m message
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return ours, fmt.Errorf("not the output of govulncheck -format json: %w", err)
		}
		scanned = scanned || m.Config != nil
		f := m.Finding
		if f == nil || len(f.Trace) == 0 || f.Trace[0].Function == "" || slices.Contains(seen, f.OSV) {
			continue // imported, not called; or said already
		}
		seen = append(seen, f.OSV)
		at := f.Trace[0]
		if at.Module == "stdlib" {
			fmt.Fprintf(w, "%s: Go's %s, mended in %s: build with that Go release\n", f.OSV, at.Package, f.Fixed)
			continue
		}
		ours++
		fmt.Fprintf(w, "%s: %s@%s, mended in %s\n", f.OSV, at.Module, at.Version, f.Fixed)
	}
	if !scanned {
		return ours, errors.New("nothing was scanned")
	}
	return ours, nil
}
