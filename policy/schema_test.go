package policy

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated files instead of comparing them")

// generated compares a file that is made from code with the one checked in.
func generated(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test ./policy -update makes it", err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s is out of date; go test ./policy -update mends it (-want +got):\n%s", file, d)
	}
}

func TestSchemaIsThatOfTheGoTypes(t *testing.T) {
	raw, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	generated(t, "../policies/schema/input.schema.json", raw)
}
