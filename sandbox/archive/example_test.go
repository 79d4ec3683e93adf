package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"testing/fstest"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
)

// A directory becomes a stream, and a stream a directory. What is neither a
// directory nor a file does not travel, and the report says so.
func Example() {
	ctx := context.Background()
	src := fstest.MapFS{
		"main.py":  {Data: []byte("print('hello')\n"), Mode: 0o644},
		"bin/tool": {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
	}
	var stream bytes.Buffer
	report, err := archive.Write(ctx, &stream, src)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Files, "files of", report.Bytes, "bytes went")

	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()
	report, err = archive.Extract(ctx, &stream, root, archive.Options{})
	fmt.Println(report.Files, "files came:", err)
	// Output:
	// 2 files of 25 bytes went
	// 2 files came: <nil>
}

// Limits hold for what is made, whoever made the archive.
func ExampleExtract() {
	var stream bytes.Buffer
	w := tar.NewWriter(&stream)
	_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "way", Linkname: "/etc"})
	_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "way/passwd", Mode: 0o644})
	_ = w.Close()

	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()
	report, err := archive.Extract(context.Background(), &stream, root, archive.Options{Limits: archive.Limits{Bytes: 1 << 20}})
	fmt.Println(report.LeftOut)
	fmt.Println(err)
	// Output:
	// ["way" (symbolic link)]
	// "way" is in the way of what should be in it
}
