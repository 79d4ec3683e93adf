package main

import (
	"io"
	"slices"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		stream []string
		want   string
		ok     bool
		broken bool
		says   string
	}{
		{
			name: "passed tests and their subtests count",
			stream: []string{
				`{"Action":"start","Package":"p"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/sub"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: "2 passed, 0 failed, 0 skipped", ok: true, says: "ok  \tp\t0.1s",
		},
		{
			name: "a skip fails the run and is named",
			stream: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestB","Output":"no daemon\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestB"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: "1 passed, 0 failed, 1 skipped", says: "no daemon",
		},
		{
			name: "a package without tests is no skip",
			stream: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}`,
				`{"Action":"skip","Package":"q"}`,
			},
			want: "1 passed, 0 failed, 0 skipped", ok: true, says: "no test files",
		},
		{
			name: "a failed test is counted once and shown",
			stream: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"got 1, want 2\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: "0 passed, 1 failed, 0 skipped", says: "got 1, want 2",
		},
		{
			name: "a package that does not build is a failure and shows why",
			stream: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"ImportPath":"q","Action":"build-output","Output":"undefined: x\n"}`,
				`{"ImportPath":"q","Action":"build-fail"}`,
				`{"Action":"start","Package":"q"}`,
				`{"Action":"fail","Package":"q"}`,
			},
			want: "1 passed, 1 failed, 0 skipped", says: "undefined: x",
		},
		{
			name:   "no test at all does not pass",
			stream: []string{`{"Action":"skip","Package":"p"}`},
			want:   "0 passed, 0 failed, 0 skipped",
		},
		{
			name: "a stream that is cut is an error",
			stream: []string{
				`{"Action":"start","Package":"p"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
			},
			want: "1 passed, 0 failed, 0 skipped", ok: true, broken: true,
		},
		{
			name:   "what is not JSON is passed on",
			stream: []string{"go: cannot find module", `{"Action":"pass","Package":"p","Test":"TestA"}`},
			want:   "1 passed, 0 failed, 0 skipped", ok: true, says: "go: cannot find module",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			got, err := count(strings.NewReader(strings.Join(tt.stream, "\n")), &out)
			if (err != nil) != tt.broken {
				t.Errorf("error = %v, want one: %t", err, tt.broken)
			}
			if got.String() != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if got.ok() != tt.ok {
				t.Errorf("ok = %t, want %t", got.ok(), tt.ok)
			}
			if !strings.Contains(out.String(), tt.says) {
				t.Errorf("output %q does not say %q", out.String(), tt.says)
			}
		})
	}
}

func TestTheSlowestTestsAreToldAndNoSubtest(t *testing.T) {
	t.Parallel()
	total, err := count(strings.NewReader(`{"Action":"pass","Package":"p","Test":"TestA/sub","Elapsed":9}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":9}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":10.5}
{"Action":"pass","Package":"p","Test":"TestC","Elapsed":0}
{"Action":"pass","Package":"q","Test":"TestA","Elapsed":1}
{"Action":"pass","Package":"p","Elapsed":20}
`), io.Discard)
	if got := total.slowest(2); err != nil || !slices.Equal(got, []string{"p TestB", "p TestA"}) || len(total.slowest(9)) != 3 {
		t.Errorf("%q, %v", got, err)
	}
}
