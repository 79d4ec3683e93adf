package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// record is an ordinary one.
func record(op string) sandbox.Record {
	return sandbox.Record{Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Op: op, Backend: "memory", Sandbox: "sb-1", Program: "a<b>&\u2028", Exit: &sandbox.Exit{Code: 1}}
}

func open(t *testing.T, name string) *File {
	t.Helper()
	f, err := OpenFile(name, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func put(t *testing.T, f *File, ops ...string) {
	t.Helper()
	for _, op := range ops {
		if err := f.Record(t.Context(), record(op)); err != nil {
			t.Fatal(err)
		}
	}
}

// file is one with a record of each op, closed, and its content.
func file(t *testing.T, ops ...string) (name string, content []byte, head Head) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "audit.jsonl")
	f := open(t, name)
	put(t, f, ops...)
	head = f.Head()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return name, content, head
}

func TestAFileIsAChainThatGoesOnWhenItIsOpenedAgain(t *testing.T) {
	t.Parallel()
	name, content, head := file(t, "create", "run")
	f := open(t, name)
	if f.Head() != head || head.Seq != 2 {
		t.Errorf("opened at %+v, was %+v", f.Head(), head)
	}
	put(t, f, "close")
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	if err := f.Record(t.Context(), record("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("written after Close: %v", err)
	}
	all, err := os.ReadFile(name)
	if err != nil || !bytes.HasPrefix(all, content) {
		t.Errorf("%v: what was there changed", err)
	}
	rep, err := Verify(bytes.NewReader(all), VerifyOptions{Head: head.Hash})
	if err != nil || rep.Records != 3 || rep.After != 1 || rep.Head != f.Head() {
		t.Errorf("%+v, %v", rep, err)
	}
	if fi, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
}

func TestATornLineIsRepairedAndNothingElseIsTouched(t *testing.T) {
	t.Parallel()
	_, content, _ := file(t, "create", "run", "close")
	last := bytes.LastIndexByte(content[:len(content)-1], '\n') + 1
	for cut := last; cut < len(content); cut += 7 {
		for _, zeros := range []int{0, 100} {
			name := filepath.Join(t.TempDir(), "torn.jsonl")
			torn := append(bytes.Clone(content[:cut]), make([]byte, zeros)...)
			if err := os.WriteFile(name, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			f := open(t, name)
			put(t, f, "more")
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(name)
			if err != nil || !bytes.HasPrefix(got, content[:last]) {
				t.Fatalf("cut at %d: what was before the torn line changed (%v)", cut, err)
			}
			rep, err := Verify(bytes.NewReader(got), VerifyOptions{})
			want := uint64(1)
			if len(torn) == last {
				want = 0
			}
			if err != nil || rep.Repairs != want || rep.Records != 3 {
				t.Errorf("cut at %d and %d zeros: %+v, %v", cut, zeros, rep, err)
			}
			if e, err := parse(bytes.Split(got, []byte("\n"))[2]); want == 1 && (err != nil || !bytes.Equal(e.Repair.Cut, torn[last:])) {
				t.Errorf("cut at %d: the repair is %+v, %v", cut, e.Repair, err)
			}
		}
	}
}

// The repair itself may be cut short by the next crash.
func TestATornRepairIsRepaired(t *testing.T) {
	t.Parallel()
	name, content, _ := file(t, "create", "run")
	if err := os.WriteFile(name, content[:len(content)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, name).Close(); err != nil {
		t.Fatal(err)
	}
	repaired, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, repaired[:len(repaired)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, open(t, name), "more")
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if rep, err := Verify(bytes.NewReader(got), VerifyOptions{}); err != nil || rep.Repairs != 1 || rep.Records != 2 {
		t.Errorf("%+v, %v", rep, err)
	}
}

func TestWhatIsNoAuditFileIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	_, content, _ := file(t, "create", "run")
	for _, c := range []struct{ name, content, says string }{
		{"another's lines", "root:x:0:0\n", "not one of ours"},
		{"another's text without an end", "some notes", "not the beginning of a line of ours"},
		{"a chain and another's end", string(content) + "garbage", "not the beginning of a line of ours"},
		{"a chain and another's line", string(content) + "{}\n", "not one of ours"},
		{"a line without an end that is too long", strings.Repeat("x", 3*maxLine), "too long"},
		{"a chain and too many zeros", string(content) + strings.Repeat("\x00", maxRecord+1), "not the beginning"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "x")
			if err := os.WriteFile(name, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := OpenFile(name, FileOptions{})
			if !errors.Is(err, sandbox.CodeInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if got, err := os.ReadFile(name); err != nil || string(got) != c.content {
				t.Errorf("%v: it was changed", err)
			}
		})
	}
}

func TestAPlaceThatCannotHoldTheFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := OpenFile(filepath.Join(dir, "none", "x"), FileOptions{}); !errors.Is(err, sandbox.CodeUnavailable) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := OpenFile(dir, FileOptions{}); err == nil {
		t.Error("a directory was opened")
	}
	if _, err := OpenFile(filepath.Join(dir, "x"), FileOptions{Sync: 9}); !errors.Is(err, sandbox.CodeInvalid) {
		t.Errorf("an unknown policy: %v", err)
	}
	if runtime.GOOS != "windows" {
		name := filepath.Join(dir, "open")
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFile(name, FileOptions{}); !errors.Is(err, sandbox.CodeInvalid) || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("a file that others read: %v", err)
		}
	}
}

func TestAFileThatIsNotOursAnyMoreFailsForGood(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(name string) error
		says string
	}{
		{"moved", func(n string) error { return os.Rename(n, n+".1") }, "moved or removed"},
		{"removed", os.Remove, "moved or removed"},
		{"replaced", func(n string) error { return errors.Join(os.Rename(n, n+".1"), os.WriteFile(n, nil, 0o600)) }, "another file"},
		{"cut", func(n string) error { return os.Truncate(n, 3) }, "somebody else wrote it"},
		{"written by another", func(n string) error {
			f, err := os.OpenFile(n, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("x")
			return errors.Join(err, f.Close())
		}, "somebody else wrote it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "x")
			f := open(t, name)
			put(t, f, "create")
			if err := c.do(name); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := f.Record(t.Context(), record("run")); !errors.Is(err, sandbox.CodeConflict) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// failingDisk fails what it is told to, once each.
type failingDisk struct {
	disk
	write, sync, truncate bool
}

func once(b *bool) bool { was := *b; *b = false; return was }

func (d *failingDisk) WriteAt(p []byte, at int64) (int, error) {
	if once(&d.write) {
		n, _ := d.disk.WriteAt(p[:len(p)/2], at)
		return n, errors.New("no space left")
	}
	return d.disk.WriteAt(p, at)
}

func (d *failingDisk) Sync() error {
	if once(&d.sync) {
		return errors.New("i/o error")
	}
	return d.disk.Sync()
}

func (d *failingDisk) Truncate(n int64) error {
	if once(&d.truncate) {
		return errors.New("i/o error")
	}
	return d.disk.Truncate(n)
}

func TestAFailingDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                  string
		write, sync, truncate bool
		again                 bool // the next Record is kept
	}{
		{"a full disk leaves nothing of the line", true, false, false, true},
		{"half a line that cannot be taken back is the end", true, false, true, false},
		{"a disk that did not keep a line is the end", false, true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "x")
			f := open(t, name)
			put(t, f, "create")
			f.f = &failingDisk{f.f, c.write, c.sync, c.truncate}
			if err := f.Record(t.Context(), record("run")); !errors.Is(err, sandbox.CodeUnavailable) {
				t.Errorf("got %v", err)
			}
			if err := f.Record(t.Context(), record("again")); (err == nil) != c.again {
				t.Errorf("the next one: %v", err)
			}
			_ = f.Close()
			put(t, open(t, name), "later")
			r, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			if rep, err := Verify(r, VerifyOptions{}); err != nil {
				t.Errorf("%+v, %v", rep, err)
			}
		})
	}
}

func TestARecordThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	f := open(t, filepath.Join(t.TempDir(), "x"))
	r := record("run")
	r.Warnings = []string{strings.Repeat("x", maxRecord)}
	if err := f.Record(t.Context(), r); !errors.Is(err, sandbox.CodeInvalid) {
		t.Errorf("got %v", err)
	}
	put(t, f, "run")
}

func TestAnEndedContextRecordsNothing(t *testing.T) {
	t.Parallel()
	f := open(t, filepath.Join(t.TempDir(), "x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Record(ctx, record("run")); !errors.Is(err, context.Canceled) || f.Head().Seq != 0 {
		t.Errorf("got %v, %+v", err, f.Head())
	}
}

func TestManyGoroutinesMakeOneChain(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "x")
	f, err := OpenFile(name, FileOptions{Sync: SyncClose})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if err := f.Record(context.Background(), record("run")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if rep, err := Verify(r, VerifyOptions{}); err != nil || rep.Records != 400 {
		t.Errorf("%+v, %v", rep, err)
	}
}

// TestMain lets the test be the other process.
func TestMain(m *testing.M) {
	if name := os.Getenv("AUDIT_TEST_HOLD"); name != "" {
		f, err := OpenFile(name, FileOptions{})
		if err != nil {
			fmt.Println(sandbox.CodeOf(err))
			os.Exit(1)
		}
		fmt.Println("held", f.Head().Seq)
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // without Close, as one that is killed
	}
	os.Exit(m.Run())
}

func TestOneProcessWritesAFileAtATime(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "x")
	f := open(t, name)
	put(t, f, "create")
	if _, err := OpenFile(name, FileOptions{}); !errors.Is(err, sandbox.CodeConflict) {
		t.Errorf("opened twice here: %v", err)
	}
	other := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "AUDIT_TEST_HOLD="+name)
		return cmd
	}
	if out, err := other().Output(); err == nil || strings.TrimSpace(string(out)) != string(sandbox.CodeConflict) {
		t.Errorf("opened by another process: %q, %v", out, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := other()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 7)
	if _, err := io.ReadFull(stdout, line); err != nil || string(line) != "held 1\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := OpenFile(name, FileOptions{}); !errors.Is(err, sandbox.CodeConflict) {
		t.Errorf("opened while another process holds it: %v", err)
	}
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	put(t, open(t, name), "run")
}

func BenchmarkFile(b *testing.B) {
	for _, s := range []struct {
		name string
		sync Sync
	}{{"SyncEach", SyncEach}, {"SyncClose", SyncClose}} {
		b.Run(s.name, func(b *testing.B) {
			f, err := OpenFile(filepath.Join(b.TempDir(), "x"), FileOptions{Sync: s.sync})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := f.Record(b.Context(), record("run")); err != nil {
					b.Fatal(err)
				}
			}
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
