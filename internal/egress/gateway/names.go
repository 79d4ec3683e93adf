package gateway

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// names remembers for a moment what names lead to, asks for each once at a
// time, and rations the questions: who runs a zone that a wildcard allows could
// be told something by them.
type names struct {
	lookup Lookup
	bucket bucket

	mu    sync.Mutex
	known map[string]*known
}

// known is a name that is asked for, or was.
type known struct {
	done  chan struct{} // closed once the rest is there
	addrs []netip.Addr
	err   error
	again bool // it failed, and who asked had given up, which says nothing of the name
	until time.Time
}

const (
	// NameTTL is for how long an answer is used again.
	NameTTL = 10 * time.Second

	nameRate, nameBurst = 20, 100
	maxNames            = 1024
)

func newNames(l Lookup) *names {
	return &names{lookup: l, bucket: bucket{rate: nameRate, size: nameBurst}, known: map[string]*known{}}
}

// find gives a host's addresses. A failure is not remembered.
func (n *names) find(ctx context.Context, host string) ([]netip.Addr, error) {
	for {
		k, mine, err := n.get(host)
		if err != nil {
			return nil, err
		}
		if mine {
			n.ask(ctx, host, k)
		}
		select {
		case <-k.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !k.again || ctx.Err() != nil {
			return k.addrs, k.err
		}
	}
}

// get gives what is known of a host, or is being asked; if it is mine, the
// caller asks.
func (n *names) get(host string) (k *known, mine bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if k, ok := n.known[host]; ok && (k.until.IsZero() || now.Before(k.until)) {
		return k, false, nil
	}
	if !n.bucket.take(now) {
		return nil, false, refuse(egress.Rate, "")
	}
	if len(n.known) >= maxNames {
		// Which of them go does not matter: each is asked for again.
		maps.DeleteFunc(n.known, func(_ string, k *known) bool { return !k.until.IsZero() })
	}
	k = &known{done: make(chan struct{})}
	n.known[host] = k
	return k, true, nil
}

// ask asks for a name, for all who wait for it.
func (n *names) ask(ctx context.Context, host string, k *known) {
	within, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	found, err := n.lookup(within, host+".")
	found = found[:min(len(found), maxTold)]
	for i := range found {
		found[i] = found[i].Unmap()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	k.addrs, k.err, k.again, k.until = found, err, err != nil && ctx.Err() != nil, time.Now().Add(NameTTL)
	if err != nil && n.known[host] == k {
		delete(n.known, host)
	}
	close(k.done)
}
