//go:build dockertest

package guest_test

import (
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
)

func owned(t testing.TB) *box {
	t.Helper()
	return newBox(t, want{boot: guest.Boot{Owned: true}})
}

func TestM39TheResultDoesNotWaitForGrandchildrenThatHoldThePipes(t *testing.T) {
	b := owned(t)
	r := b.run("sh", "-c", "sleep 300 & echo hi")
	if r.stdout != "hi\n" || r.exit.Code != 0 || r.took > time.Second {
		t.Fatalf("got %+v", r)
	}
}

func TestAttest(t *testing.T) {
	b := owned(t)
	r, err := b.guest.Attest(limited(t, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if err := b.guest.End(limited(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	if code := b.ended(5 * time.Second); code != guest.ExitEnded {
		t.Fatalf("exit %d", code)
	}
}
