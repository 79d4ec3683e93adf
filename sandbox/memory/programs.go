package memory

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// signals that "raise" knows.
var signals = map[string]int{"HUP": 1, "INT": 2, "KILL": 9, "USR1": 10, "TERM": 15}

// run runs one program of the vocabulary to its end.
func run(t *task) (code int, signal string) {
	if strings.Contains(t.args[0], "/") {
		return t.byPath(), ""
	}
	if t.args[0] == "raise" && len(t.args) == 2 && signals[t.args[1]] > 0 {
		return 128 + signals[t.args[1]], "SIG" + t.args[1]
	}
	program, ok := vocabulary()[t.args[0]]
	if !ok {
		return t.complain(127, "no such program; the memory backend runs a fixed vocabulary"), ""
	}
	if len(t.args) < 1+program.args {
		return t.complain(2, "too few arguments"), ""
	}
	return program.run(t, t.args[1:]), ""
}

// byPath answers a program named by path: none can be executed.
func (t *task) byPath() int {
	t.box.tree.mu.Lock()
	_, _, err := t.box.tree.get(t.path(t.args[0]), true)
	t.box.tree.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		return t.complain(127, "not found")
	}
	return t.complain(126, "permission denied")
}

type program struct {
	args int // at least
	run  func(t *task, args []string) int
}

func vocabulary() map[string]program {
	return map[string]program{
		"true":         {0, func(*task, []string) int { return 0 }},
		"false":        {0, func(*task, []string) int { return 1 }},
		"exit":         {1, func(_ *task, args []string) int { n, _ := strconv.Atoi(args[0]); return n & 0xff }},
		"raise":        {1, func(t *task, args []string) int { return t.complain(2, "unknown signal %s", args[0]) }},
		"echo":         {0, func(t *task, args []string) int { return t.out(strings.Join(args, " ") + "\n") }},
		"args":         {0, func(t *task, args []string) int { return t.out(strings.Join(args, "\x00") + "\x00") }},
		"both":         {2, both},
		"write-stderr": {0, func(t *task, args []string) int { _ = t.print(driver.Stderr, strings.Join(args, " ")+"\n"); return 0 }},
		"env":          {0, func(t *task, _ []string) int { return t.environment("\n") }},
		"environ":      {0, func(t *task, _ []string) int { return t.environment("\x00") }},
		"getenv":       {1, getenv},
		"sha256":       {0, hash},
		"pwd":          {0, func(t *task, _ []string) int { return t.out(t.dir + "\n") }},
		"swallow":      {0, swallow},
		"cat":          {0, cat},
		"bytes":        {0, allBytes},
		"flood":        {1, flood},
		"count":        {1, count},
		"yes":          {0, func(t *task, _ []string) int { return t.repeat(-1, "y\n") }},
		"hang":         {0, hang},
		"stubborn":     {0, hang},
		"sleep":        {1, sleep},
		"spin":         {0, func(t *task, _ []string) int { <-t.ctx.Done(); return 0 }},
		"deaf": {0, func(t *task, _ []string) int {
			t.stdin.hangUp()
			_ = t.out("ready\n")
			t.pause(1000 * time.Second)
			return 0
		}},
		"spawn-daemon": {1, spawnDaemon},
		"spawn-job":    {1, spawnDaemon},
		"beat":         {1, func(t *task, args []string) int { t.beat(t.path(args[0])); return 0 }},
		"leave": {0, func(t *task, _ []string) int {
			t.background(func() { t.pause(300 * time.Second) })
			return t.out("hi\n")
		}},
		"write": {1, func(t *task, args []string) int { return errno(t.box.tree.appendTo(t.path(args[0]), []byte("x"))) }},
		"link": {2, func(t *task, args []string) int {
			return t.node(args[1], &node{mode: fs.ModeSymlink | 0o777, link: args[0]})
		}},
		"fifo":     {1, func(t *task, args []string) int { return t.node(args[0], &node{mode: fs.ModeNamedPipe | 0o644}) }},
		"fetch":    {1, func(t *task, args []string) int { return fetch(t, args[0], false) }},
		"proxied":  {1, func(t *task, args []string) int { return fetch(t, args[0], true) }},
		"resolve":  {1, resolve},
		"fork":     {1, fork},
		"hog":      {1, hog},
		"fill":     {2, fill},
		"burn":     {0, burn},
		"status":   {0, func(t *task, _ []string) int { return t.out(status) }},
		"cmdlines": {0, func(t *task, _ []string) int { return t.out(t.box.cmdlines()) }},
		"kernel":   {0, func(t *task, _ []string) int { return t.out(Kernel() + "\n") }},
		"sh":       {1, script},
		"python3":  {1, script},
	}
}

// status is what /proc/self/status would say if anything were enforced.
const status = "Uid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\nNoNewPrivs:\t1\nSeccomp:\t2\n" +
	"CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n"

func (t *task) out(text string) int {
	if t.print(driver.Stdout, text) != nil {
		return 1
	}
	return 0
}

// repeat prints n bytes of text over and over; n < 0 is for ever.
func (t *task) repeat(n int64, text string) int {
	block := bytes.Repeat([]byte(text), pipeSize/len(text))
	for n != 0 {
		if n > 0 && n < int64(len(block)) {
			block = block[:n]
		}
		if t.write(driver.Stdout, block) != nil {
			return 1
		}
		if n > 0 {
			n -= int64(len(block))
		}
	}
	return 0
}

func errno(err error) int {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return int(e) & 0x7f
	}
	return 0
}

func (t *task) node(name string, n *node) int {
	t.box.tree.mu.Lock()
	defer t.box.tree.mu.Unlock()
	return errno(t.box.tree.put(t.path(name), n))
}

func both(t *task, args []string) int {
	if t.print(driver.Stdout, args[0]) != nil || t.print(driver.Stderr, args[1]) != nil {
		return 1
	}
	return 0
}

// environment prints every variable and what ends it.
func (t *task) environment(end string) int {
	for _, k := range slices.Sorted(maps.Keys(t.env)) {
		if t.out(k+"="+t.env[k]+end) != 0 {
			return 1
		}
	}
	return 0
}

func getenv(t *task, args []string) int {
	v, ok := t.env[args[0]]
	if !ok {
		return t.complain(1, "%s is not set", args[0])
	}
	return t.out(v)
}

func hash(t *task, args []string) int {
	h := sha256.New()
	if len(args) > 0 {
		v, ok := t.env[args[0]]
		if !ok {
			return t.complain(1, "%s is not set", args[0])
		}
		h.Write([]byte(v))
	} else if err := t.copyStdin(h); err != nil {
		return 1
	}
	return t.out(fmt.Sprintf("%x", h.Sum(nil)))
}

func (t *task) copyStdin(w io.Writer) error {
	for {
		c, err := t.stdin.read(t.ctx, pipeSize)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(c.Data); err != nil {
			return err
		}
	}
}

func swallow(t *task, _ []string) int {
	var n counter
	if t.copyStdin(&n) != nil {
		return 1
	}
	return t.out(fmt.Sprintf("%d\n", n))
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

type stdout struct{ *task }

func (s stdout) Write(b []byte) (int, error) {
	return len(b), s.write(driver.Stdout, b)
}

func cat(t *task, args []string) int {
	if len(args) == 0 {
		if t.copyStdin(stdout{t}) != nil {
			return 1
		}
		return 0
	}
	for _, name := range args {
		t.box.tree.mu.Lock()
		_, n, err := t.box.tree.get(t.path(name), true)
		t.box.tree.mu.Unlock()
		if err != nil || !n.mode.IsRegular() {
			return t.complain(1, "cannot read %s", name)
		}
		if t.out(string(n.data)) != 0 {
			return 1
		}
	}
	return 0
}

func allBytes(t *task, _ []string) int {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return t.out(string(b))
}

func flood(t *task, args []string) int {
	n, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || n < 0 {
		return t.complain(2, "%q is no number", args[0])
	}
	return t.repeat(n, "\x00")
}

func count(t *task, args []string) int {
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 0 {
		return t.complain(2, "%q is no number", args[0])
	}
	var text bytes.Buffer
	for i := range n {
		fmt.Fprintln(&text, i+1)
	}
	return t.out(text.String())
}

// hang goes on until it is ended. No signal but the last reaches a program
// here, so that every one of them is stubborn.
func hang(t *task, _ []string) int {
	_ = t.out("ready\n")
	t.pause(1000 * time.Second)
	return 0
}

func sleep(t *task, args []string) int {
	s, err := strconv.ParseFloat(args[0], 64)
	if err != nil || s < 0 || s > 1e9 {
		return t.complain(2, "%q is no number of seconds", args[0])
	}
	t.pause(time.Duration(s * float64(time.Second)))
	return 0
}

// beat appends to a file until the tree is ended.
func (t *task) beat(name string) {
	for t.box.tree.appendTo(name, []byte(".")) == nil && t.pause(50*time.Millisecond) {
	}
}

func spawnDaemon(t *task, args []string) int {
	name := t.path(args[0])
	if err := t.box.tree.appendTo(name, []byte(".")); err != nil {
		return t.complain(1, "%v", err)
	}
	t.background(func() { t.beat(name) })
	_ = t.out("ready\n")
	t.pause(1000 * time.Second)
	return 0
}

func fetch(t *task, addr string, proxied bool) int {
	host, text, err := net.SplitHostPort(addr)
	port, perr := strconv.ParseUint(text, 10, 16)
	if err != nil || perr != nil {
		return t.complain(2, "%q is not host and port", addr)
	}
	if !t.box.reach(host, uint16(port), proxied) {
		return t.complain(7, "no answer from %s", addr)
	}
	return t.out("reached\n")
}

func resolve(t *task, args []string) int {
	a, ok := t.box.resolve(args[0])
	if !ok {
		return t.complain(6, "no such name")
	}
	return t.out(a.String() + "\n")
}

func fork(t *task, args []string) int {
	n, _ := strconv.ParseInt(args[0], 10, 64)
	return t.out(fmt.Sprint(min(n, t.box.spec.Resources.PIDs-2)))
}

func hog(t *task, args []string) int {
	if n, _ := strconv.ParseInt(args[0], 10, 64); n > t.box.spec.Resources.MemoryMiB {
		t.cancel(errOOM)
		return 137
	}
	return t.out("held")
}

func fill(t *task, args []string) int {
	n, _ := strconv.Atoi(args[1])
	name := t.path(args[0])
	written, code := 0, 0
	for block := bytes.Repeat([]byte("x"), 1<<20); written < n && code == 0; {
		if code = errno(t.box.tree.appendTo(name, block)); code == 0 {
			written++
		}
	}
	t.box.tree.mu.Lock()
	delete(t.box.tree.nodes, name)
	t.box.tree.mu.Unlock()
	_ = t.out(fmt.Sprint(written))
	return code
}

// burn works for a second, as hard as its cap lets it.
func burn(t *task, _ []string) int {
	t.pause(time.Second)
	return t.out(fmt.Sprint(min(1000, t.box.spec.Resources.CPUMillis)))
}

// script runs a text line by line, until one fails that does not end in "|| true".
func script(t *task, args []string) int {
	var text string
	if args[0] == "-c" && len(args) > 1 {
		text = args[1]
	} else {
		t.box.tree.mu.Lock()
		_, n, err := t.box.tree.get(t.path(args[0]), true)
		t.box.tree.mu.Unlock()
		if err != nil || !n.mode.IsRegular() {
			return t.complain(2, "cannot read %s", args[0])
		}
		text = string(n.data)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case t.args[0] == "python3":
			said, err := strconv.Unquote(strings.TrimSuffix(strings.TrimPrefix(line, "print("), ")"))
			if err != nil || !strings.HasPrefix(line, "print(") {
				return t.complain(1, `only print("text") is simulated`)
			}
			if t.out(said+"\n") != 0 {
				return 1
			}
		default:
			line, may := strings.CutSuffix(line, "|| true")
			if code, _ := run(&task{process: t.process, args: strings.Fields(line), env: t.env, dir: t.dir}); code != 0 && !may {
				return code
			}
		}
	}
	return 0
}
