package gateway

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// MaxNames is how many names are pinned at a time; the one that would end
	// first makes room.
	MaxNames = 1024
	// MaxAddrs is how many addresses a name has at a time, of both families.
	MaxAddrs = 16
	// MinTTL and MaxTTL bound how long an answer is given again.
	MinTTL = 5 * time.Second
	MaxTTL = 5 * time.Minute
	// Grace is for how long an address is good after its answer has ended: a
	// program may take its time between resolving and connecting.
	Grace = time.Minute
)

// Pins are the addresses that were resolved for names, for a while. The zero
// value is empty and ready to use; Pins are safe for concurrent use.
type Pins struct {
	mu    sync.Mutex
	names map[string]*pinned
}

// pinned is what is known of one name.
type pinned struct {
	answers [2]answer // IPv4, IPv6
	addrs   []pin
}

// answer is what is given again until it ends. One without addresses says that
// there are none.
type answer struct {
	addrs []netip.Addr
	until time.Time
}

type pin struct {
	addr  netip.Addr
	until time.Time
}

func family(v6 bool) int {
	if v6 {
		return 1
	}
	return 0
}

// Pin keeps an answer of one family for a name, with at most MaxAddrs
// addresses, and gives the lifetime it has: ttl within MinTTL and MaxTTL.
func (p *Pins) Pin(name string, v6 bool, addrs []netip.Addr, ttl time.Duration, now time.Time) time.Duration {
	ttl = min(max(ttl, MinTTL), MaxTTL)
	addrs = addrs[:min(len(addrs), MaxAddrs)]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names == nil {
		p.names = map[string]*pinned{}
	}
	known, ok := p.names[name]
	if !ok {
		p.makeRoom(now)
		known = &pinned{}
		p.names[name] = known
	}
	known.answers[family(v6)] = answer{addrs, now.Add(ttl)}
	for _, a := range addrs {
		known.keep(pin{a, now.Add(ttl + Grace)}, now)
	}
	return ttl
}

// keep adds a pin: in the place of the same address, else of one that has
// ended, else of the one that ends first.
func (k *pinned) keep(add pin, now time.Time) {
	at := slices.IndexFunc(k.addrs, func(have pin) bool { return have.addr == add.addr })
	if at < 0 {
		at = slices.IndexFunc(k.addrs, func(have pin) bool { return !have.until.After(now) })
	}
	if at < 0 && len(k.addrs) < MaxAddrs {
		k.addrs = append(k.addrs, add)
		return
	}
	if at < 0 {
		at = 0
		for i, have := range k.addrs {
			if have.until.Before(k.addrs[at].until) {
				at = i
			}
		}
	}
	k.addrs[at] = add
}

// end is when nothing of it is good any more.
func (k *pinned) end() time.Time {
	var end time.Time
	for _, a := range k.answers {
		if a.until.After(end) {
			end = a.until
		}
	}
	for _, a := range k.addrs {
		if a.until.After(end) {
			end = a.until
		}
	}
	return end
}

func (p *Pins) makeRoom(now time.Time) {
	if len(p.names) < MaxNames {
		return
	}
	first, ends := "", time.Time{}
	for name, k := range p.names {
		end := k.end()
		if !end.After(now) {
			delete(p.names, name)
			continue
		}
		if ends.IsZero() || end.Before(ends) {
			first, ends = name, end
		}
	}
	if len(p.names) >= MaxNames {
		delete(p.names, first)
	}
}

// Answer gives what was answered, and for how long it still is; false when
// there is nothing to be given again.
func (p *Pins) Answer(name string, v6 bool, now time.Time) (addrs []netip.Addr, left time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, found := p.names[name]
	if !found {
		return nil, 0, false
	}
	a := known.answers[family(v6)]
	return a.addrs, a.until.Sub(now), a.until.After(now)
}

// Has reports whether an address was resolved for a name, and is still good.
func (p *Pins) Has(name string, addr netip.Addr, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.names[name]; ok {
		for _, have := range known.addrs {
			if have.addr == addr {
				return have.until.After(now)
			}
		}
	}
	return false
}
