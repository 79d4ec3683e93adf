package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is what we read of a test2json event.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

type totals struct {
	passed, failed, skipped int
	skippedNames            []string
	took                    map[string]float64 // seconds, of tests that are no subtests
}

// slowest are the tests that took longest, of the longest first.
func (t totals) slowest(most int) []string {
	names := slices.SortedFunc(maps.Keys(t.took), func(a, b string) int { return cmp.Or(cmp.Compare(t.took[b], t.took[a]), cmp.Compare(a, b)) })
	return names[:min(most, len(names))]
}

func (t totals) ok() bool { return t.failed == 0 && t.skipped == 0 && t.passed > 0 }

func (t totals) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

// key names a test, or with no test in it the package itself.
type key struct{ pkg, test string }

// run is one stream of events being counted.
type run struct {
	totals

	out     io.Writer
	said    map[key][]string // what each unfinished test said
	running map[string]bool  // packages that started and did not end
	failing map[string]bool  // packages with a failed test
}

// count adds up the stream and copies to out what a reader needs.
func count(in io.Reader, out io.Writer) (totals, error) {
	r := run{totals: totals{took: map[string]float64{}}, out: out, said: map[key][]string{}, running: map[string]bool{}, failing: map[string]bool{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimSpace(line); line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
				r.add(e)
			} else {
				fmt.Fprintln(out, line) // go itself, outside of any test
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r.totals, err
		}
	}
	return r.totals, r.unfinished()
}

func (r *run) add(e event) {
	k := key{e.Package, e.Test}
	if e.Elapsed > 0 && e.Test != "" && !strings.Contains(e.Test, "/") {
		r.took[e.Package+" "+e.Test] = e.Elapsed
	}
	switch e.Action {
	case "start":
		r.running[e.Package] = true
	case "output":
		r.output(k, e.Output)
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "pass":
		if e.Test != "" {
			r.passed++
		}
		r.end(k)
	case "skip":
		if e.Test != "" { // a package's own skip says that it has no tests
			r.skipped++
			r.skippedNames = append(r.skippedNames, e.Package+" "+e.Test)
			r.print(k)
		}
		r.end(k)
	case "fail":
		r.fail(k)
	}
}

// output keeps what a test says until its verdict is known; a package's own
// last line is printed at once, for it is the reader's progress.
func (r *run) output(k key, text string) {
	if k.test == "" && verdict(text) {
		fmt.Fprint(r.out, text)
		return
	}
	r.said[k] = append(r.said[k], text)
}

// fail counts a package that failed without a failed test (it did not build,
// it panicked, its TestMain gave up) as one failure, and no package twice. What
// its unfinished tests said is shown then: one of them is the reason.
func (r *run) fail(k key) {
	switch {
	case k.test != "":
		r.failed++
		r.print(k)
	case !r.failing[k.pkg]:
		r.failed++
		for pending := range r.said {
			if pending.pkg == k.pkg {
				r.print(pending)
			}
		}
	}
	r.failing[k.pkg] = true
	r.end(k)
}

func (r *run) print(k key) {
	for _, text := range r.said[k] {
		fmt.Fprint(r.out, text)
	}
}

func (r *run) end(k key) {
	delete(r.said, k)
	if k.test == "" {
		delete(r.running, k.pkg)
	}
}

// unfinished is an error when a package started and never ended, as when the
// stream was cut: its tests are not known to have run.
func (r *run) unfinished() error {
	if len(r.running) == 0 {
		return nil
	}
	var names []string
	for name := range r.running {
		names = append(names, name)
	}
	slices.Sort(names)
	for k := range r.said {
		r.print(k)
	}
	return fmt.Errorf("the output ends before these packages do: %s", strings.Join(names, ", "))
}

// verdict tells whether a package's line is its result rather than something
// it printed.
func verdict(text string) bool {
	for _, word := range []string{"ok  \t", "FAIL\t", "---\t", "?   \t"} {
		if strings.HasPrefix(text, word) {
			return true
		}
	}
	return false
}
