//go:build dockertest

package guest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
)

func TestASingleFileIsBounded(t *testing.T) {
	b := newBox(t, want{boot: guest.Boot{Owned: true, DiskMiB: 8}})
	if r := b.run("sh", "-c", "head -c 8M /dev/zero > ok"); r.exit.Code != 0 {
		t.Errorf("within the bound: %+v", r)
	}
	if r := b.run("sh", "-c", "head -c 20M /dev/zero > big; echo $?; stat -c %s big"); strings.HasPrefix(r.stdout, "0\n") || !strings.HasSuffix(r.stdout, "\n9437184\n") {
		t.Errorf("over it: %+v", r)
	}
}

// binary finds what the tests built.
func guestBinary() string { return filepath.Join(binaryDir, "sandboxio-guest") }

func TestTheBinaryIsSmallAndStatic(t *testing.T) {
	info, err := os.Stat(guestBinary())
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 4<<20 {
		t.Errorf("%d bytes, over 4 MiB", info.Size())
	}
	t.Logf("%d bytes", info.Size())
}
