package mutant

import (
	"archive/tar"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
)

// filing makes a Lie of one about files.
func filing(f func(driver.Files) driver.Files) func(driver.Backend, drivertest.Harness) driver.Backend {
	return wrap(lie{files: f})
}

var files = []Mutant{
	{
		Name: "it shows files before they are whole",
		Lie:  wrap(lie{files: func(f driver.Files) driver.Files { return hasty{f} }}),
		Fails: []string{
			"files: a file appears whole, or not at all",
			"cancel: a writer in mid-file leaves nothing, under no name, and is told plainly",
			"caps: no more disk than allowed, written from outside (M83)",
		},
	},
	{
		Name: "it keeps no modes",
		Lie:  filing(func(f driver.Files) driver.Files { return modeless{f} }),
		Fails: []string{
			"files: a file comes back as it was written, with its mode (M84, M86, M92)",
			"files: directories list all they hold, links as links (M90, M93)",
			"files: what is written anew replaces content and mode",
			"files: rename puts a file in another's place",
		},
	},
	{
		Name: "it lists no dotfiles",
		Lie: filing(func(f driver.Files) driver.Files {
			return listing{f, func(all []driver.FileInfo) []driver.FileInfo {
				return slices.DeleteFunc(all, func(i driver.FileInfo) bool { return strings.HasPrefix(i.Name, ".") })
			}}
		}),
		Fails: []string{
			"files: directories list all they hold, links as links (M90, M93)",
			"files: every legal name serves, as bytes (M88, M95)",
			"files: a directory is a file system as io/fs wants one, up and down again",
		},
	},
	{
		Name: "it lists the first hundred",
		Lie: filing(func(f driver.Files) driver.Files {
			return listing{f, func(all []driver.FileInfo) []driver.FileInfo { return all[:min(len(all), 100)] }}
		}),
		Fails: []string{
			"files: a directory of hundreds is listed whole, each once",
		},
	},
	{
		Name: "it says internal of whatever is wrong with a file",
		Lie: filing(func(f driver.Files) driver.Files {
			return answering{f, func(err error) error {
				if driver.CodeOf(err) == "" {
					return err
				}
				return &driver.Error{Code: driver.CodeInternal, Op: "files", Err: errors.New("it did not work")}
			}}
		}),
		Fails: []string{
			"kill: the files of what has ended are gone, open ones too",
			"files: a file appears whole, or not at all",
			"files: what does not exist is fs.ErrNotExist (M97)",
			"files: names are made, moved and removed",
			"files: a name that cannot be one is refused by name",
			"files: a directory is no file, and a file no directory",
			"files: from outside, no more may be written than by a program",
			"files: rename puts a file in another's place",
			"errors: each says where it comes from, with a code there is",
		},
	},
	{
		Name: "it says yes where a program would be denied",
		Lie: filing(func(f driver.Files) driver.Files {
			return answering{f, func(err error) error {
				if driver.CodeOf(err) == driver.CodeDenied {
					return nil
				}
				return err
			}}
		}),
		Fails: []string{
			"files: no name and no link leads to what is refused (M82)",
			"files: from outside, no more may be written than by a program",
		},
	},
	{
		Name: "its files ignore their context",
		Lie:  filing(func(f driver.Files) driver.Files { return heedless{f} }),
		Fails: []string{
			"cancel: no file operation does anything for a caller who has left",
			"cancel: a reader in mid-file reads no further, and is told plainly",
			"cancel: a writer in mid-file leaves nothing, under no name, and is told plainly",
			"archive: what is cut off on its way in leaves no part of a file",
			"archive: a caller who leaves while one comes out is told plainly",
		},
	},
	{
		Name: "it opens what is no file",
		Lie:  filing(func(f driver.Files) driver.Files { return opening{f} }),
		Fails: []string{
			"files: opening a FIFO does not block",
			"files: a directory is no file, and a file no directory",
			"files: a directory is a file system as io/fs wants one, up and down again",
		},
	},
	{
		Name: "it follows a link that it writes to",
		Lie:  filing(func(f driver.Files) driver.Files { return following{f} }),
		Fails: []string{
			"files: a link planted under a name is replaced by what is written, not followed",
		},
	},
	{
		Name: "it takes a new name for a copy",
		Lie:  filing(func(f driver.Files) driver.Files { return copying{f} }),
		Fails: []string{
			"files: names are made, moved and removed",
			"files: rename puts a file in another's place",
		},
	},
	{
		Name: "it removes nothing",
		Lie:  filing(func(f driver.Files) driver.Files { return littering{f} }),
		Fails: []string{
			"files: names are made, moved and removed",
			"files: from outside, no more may be written than by a program",
			"code: a text of 200 KiB runs, and leaves no file (M71)",
			"code: a caller who leaves leaves neither a program nor its file",
		},
	},
	{
		Name: "it mends names",
		Lie:  filing(func(f driver.Files) driver.Files { return mending{f} }),
		Fails: []string{
			"files: a name that cannot be one is refused by name",
		},
	},
	{
		Name: "it opens forty files, and no more",
		Lie: fresh(func(drivertest.Harness) lie {
			var mu sync.Mutex
			count := map[driver.Files]int{}
			return lie{files: func(f driver.Files) driver.Files {
				return counting{f, func() error {
					mu.Lock()
					defer mu.Unlock()
					if count[f]++; count[f] > 40 {
						return &driver.Error{Code: driver.CodeExhausted, Op: "open"}
					}
					return nil
				}}
			}}
		}),
		Fails: []string{
			"files: a reader who stops early harms nobody",
			"files: a directory is a file system as io/fs wants one, up and down again",
		},
	},
	{
		Name: "what it writes is there a moment later",
		Lie: fresh(func(drivertest.Harness) lie {
			var late lateness
			return lie{files: func(f driver.Files) driver.Files { return belated{f, &late} }}
		}),
		Fails: []string{
			"cancel: a writer in mid-file leaves nothing, under no name, and is told plainly",
			"files: programs and files see one another at once (M89)",
			"caps: no more disk than allowed, written from outside (M83)",
			"handle: many goroutines use one at once",
			"code: a text of 200 KiB runs, and leaves no file (M71)",
			"code: it runs where it is told, and its exit status is its own",
			"code: a caller who leaves leaves neither a program nor its file",
		},
	},
	{
		Name: "it takes what an archive says",
		Lie:  filing(func(f driver.Files) driver.Files { return gullible{f} }),
		Fails: []string{
			"archive: no name and no link in one leads out of its directory (M82)",
			"archive: what is cut off on its way in leaves no part of a file",
		},
	},
	{
		Name: "it packs what links lead to",
		Lie: filing(func(f driver.Files) driver.Files {
			return repacking{f, func(h *tar.Header) {
				if h.Typeflag == tar.TypeSymlink {
					h.Typeflag, h.Linkname = tar.TypeReg, ""
				}
			}}
		}),
		Fails: []string{
			"archive: links and FIFOs come out as such, and are neither followed nor opened",
		},
	},
	{
		Name: "it packs everything executable",
		Lie: filing(func(f driver.Files) driver.Files {
			return repacking{f, func(h *tar.Header) { h.Mode |= 0o111 }}
		}),
		Fails: []string{
			"archive: a directory goes in and comes out with every name, mode and byte (M84, M93)",
		},
	},
	{
		Name: "it keeps half of an archive's file",
		Lie:  filing(func(f driver.Files) driver.Files { return rough{f} }),
		Fails: []string{
			"archive: what is cut off on its way in leaves no part of a file",
		},
	},
}
