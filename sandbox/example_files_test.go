package sandbox_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
)

// A directory goes in: any fs.FS, such as os.DirFS or an embed.FS.
func ExampleFiles_Upload() {
	ctx := context.Background()
	sb, err := open().Create(ctx, sandbox.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Close() }()

	project := fstest.MapFS{
		"data/in.csv": {Data: []byte("1,2,3\n"), Mode: 0o644},
		"passwords":   {Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink},
	}
	report, err := sb.Files().Upload(ctx, project, "project")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Files, "file, left out:", report.LeftOut)

	res, err := sb.Run(ctx, sandbox.Cmd{Args: []string{"cat", "project/data/in.csv"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(res.Stdout))
	// Output:
	// 1 file, left out: ["passwords" (symbolic link)]
	// 1,2,3
}

// A directory comes out, in full or not at all.
func ExampleFiles_Download() {
	ctx := context.Background()
	sb, err := open().Create(ctx, sandbox.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	if err := sb.Files().Mkdir(ctx, "out", 0o755); err != nil {
		log.Fatal(err)
	}
	if _, err := sb.Run(ctx, sandbox.Cmd{Args: []string{"write", "out/result"}}); err != nil {
		log.Fatal(err)
	}

	top, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(top)
	dir := filepath.Join(top, "results") // which must not exist yet, or be empty
	if _, err := sb.Files().Download(ctx, "out", dir, archive.Limits{Bytes: 10 << 20}); err != nil {
		log.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "result"))
	fmt.Println(string(data), err)

	_, err = sb.Files().Download(ctx, "out", dir, archive.Limits{})
	fmt.Println("again:", sandbox.CodeOf(err))
	// Output:
	// x <nil>
	// again: conflict
}

// The sandbox's files for everything that takes an fs.FS.
func ExampleFiles_FS() {
	ctx := context.Background()
	sb, err := open().Create(ctx, sandbox.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	for _, name := range []string{"logs/a.txt", "logs/b.txt", "logs/c.bin"} {
		if err := sb.Files().Mkdir(ctx, "logs", 0o755); err != nil {
			log.Fatal(err)
		}
		if err := sb.Files().Write(ctx, name, []byte("text of "+name), 0o644); err != nil {
			log.Fatal(err)
		}
	}

	view := sb.Files().FS(ctx, "logs")
	names, err := fs.Glob(view, "*.txt")
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(view, name)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, string(data))
	}
	// Output:
	// a.txt text of logs/a.txt
	// b.txt text of logs/b.txt
}
