package memory

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const work = driver.WorkDir

// tree is a sandbox's file system. Paths are absolute and clean. Errors are
// those of a system call, for the caller to wrap.
type tree struct {
	mu       sync.Mutex
	nodes    map[string]*node
	capacity int64 // bytes of all files together
	readOnly bool  // but for writable
}

type node struct {
	mode fs.FileMode
	data []byte
	mod  time.Time
	link string
}

var writable = []string{work, "/tmp", "/run"}

func newTree(spec driver.Spec) *tree {
	t := &tree{nodes: map[string]*node{}, capacity: spec.Resources.DiskMiB << 20, readOnly: spec.Profile == driver.Strict}
	now := time.Now()
	empty := &node{mode: fs.ModeDir | 0o755, mod: now} // no node changes once it is in the tree
	for _, dir := range append([]string{"/", "/etc", "/usr", "/var", "/proc", "/sys", "/dev"}, writable...) {
		t.nodes[dir] = empty
	}
	t.nodes["/etc/passwd"] = &node{mode: 0o644, data: []byte("root:x:0:0::/root:/bin/false\n"), mod: now}
	return t
}

// under reports whether name is dir or in it.
func under(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// refused are the places that files are not reached in, whatever links say.
func refused(name string) bool {
	for _, dir := range []string{"/proc", "/sys", "/dev", "/.sandboxio"} {
		if under(name, dir) {
			return true
		}
	}
	return false
}

// resolve follows links in name: all of them, or all but the last part's. The
// result need not exist, its directory must. The caller holds mu.
func (t *tree) resolve(name string, last bool) (string, error) {
	for range 40 {
		if refused(name) {
			return "", syscall.EACCES
		}
		next, err := t.step(name, last)
		if err != nil || next == name {
			return name, err
		}
		name = next
	}
	return "", syscall.ELOOP
}

// step replaces the first link in name.
func (t *tree) step(name string, last bool) (string, error) {
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	at := "/"
	for i, part := range parts {
		at = path.Join(at, part)
		n, ok := t.nodes[at]
		final := i == len(parts)-1
		switch {
		case !ok && final:
			return name, nil
		case !ok:
			return "", syscall.ENOENT
		case n.mode&fs.ModeSymlink != 0 && (!final || last):
			target := n.link
			if !path.IsAbs(target) {
				target = path.Join(path.Dir(at), target)
			}
			return path.Join(append([]string{target}, parts[i+1:]...)...), nil
		case !n.mode.IsDir() && !final:
			return "", syscall.ENOTDIR
		}
	}
	return name, nil
}

// get finds what name leads to.
func (t *tree) get(name string, follow bool) (string, *node, error) {
	name, err := t.resolve(name, follow)
	if err != nil {
		return "", nil, err
	}
	n, ok := t.nodes[name]
	if !ok {
		return "", nil, syscall.ENOENT
	}
	return name, n, nil
}

// mayWrite refuses changes outside the writable places.
func (t *tree) mayWrite(name string) error {
	for _, dir := range writable {
		if !t.readOnly || under(name, dir) && name != dir {
			return nil
		}
	}
	return syscall.EROFS
}

// put sets a node whose directory exists. The caller holds mu.
func (t *tree) put(name string, n *node) error {
	name, err := t.resolve(name, false)
	if err != nil {
		return err
	}
	if err := t.mayWrite(name); err != nil {
		return err
	}
	old, ok := t.nodes[name]
	if ok && old.mode.IsDir() {
		return syscall.EISDIR
	}
	used := int64(len(n.data))
	for other, o := range t.nodes {
		if other != name {
			used += int64(len(o.data))
		}
	}
	if used > t.capacity {
		return syscall.ENOSPC
	}
	n.mod = time.Now()
	t.nodes[name] = n
	return nil
}

// mkdir makes a directory with its parents and tells where it is, links
// followed. The caller holds mu.
func (t *tree) mkdir(name string, mode fs.FileMode) (string, error) {
	at := "/"
	for part := range strings.SplitSeq(strings.TrimPrefix(name, "/"), "/") {
		next, err := t.resolve(path.Join(at, part), true)
		if err != nil {
			return "", err
		}
		if n, ok := t.nodes[next]; ok && !n.mode.IsDir() {
			return "", syscall.ENOTDIR
		} else if !ok {
			if err := t.put(next, &node{mode: fs.ModeDir | mode.Perm()}); err != nil {
				return "", err
			}
		}
		at = next
	}
	return at, nil
}

// appendTo adds data to a file, as a program does that opened it.
func (t *tree) appendTo(name string, data []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	name, err := t.resolve(name, true)
	if err != nil {
		return err
	}
	n, ok := t.nodes[name]
	if !ok {
		n = &node{mode: 0o644}
	} else if !n.mode.IsRegular() {
		return syscall.EINVAL
	}
	// Readers hold what was there before, and never look beyond its end.
	return t.put(name, &node{mode: n.mode, data: append(n.data, data...)})
}

func (t *tree) info(name string, n *node) driver.FileInfo {
	size := int64(len(n.data))
	if n.link != "" {
		size = int64(len(n.link))
	}
	return driver.FileInfo{Name: path.Base(name), Size: size, Mode: n.mode, ModTime: n.mod, Link: n.link}
}

// children lists the paths directly in dir, sorted.
func (t *tree) children(dir string) []string {
	var out []string
	for name := range t.nodes {
		if name != "/" && path.Dir(name) == dir {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
