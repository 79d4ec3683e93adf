// Command testcount reads the output of go test -json and fails on what go test
// lets pass: a skipped test, a run of no test, a stream that ends too early.
//
// It prints the output of tests that failed or were skipped, the line of each
// package, the slowest tests, and last, alone on a line: "N passed, N failed, N
// skipped".
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	start := time.Now()
	total, err := count(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		total.failed++
	}
	for _, name := range total.skippedNames {
		fmt.Println("skipped, which counts as a failure here:", name)
	}
	for _, name := range total.slowest(12) {
		fmt.Printf("slow: %4.0f s %s\n", total.took[name], name)
	}
	fmt.Printf("tests took %.0f s\n%s\n", time.Since(start).Seconds(), total)
	if !total.ok() {
		os.Exit(1)
	}
}
