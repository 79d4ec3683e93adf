package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	// sendBuffer holds one transaction: a batch goes in one system call, and
	// ten thousand networks take about a mebibyte.
	sendBuffer = 32 << 20

	// perMessage is how many elements of a set go in one message, whose
	// attributes are at most 64 KiB.
	perMessage = 1000
)

var (
	hooks = map[string]*nftables.ChainHook{"prerouting": nftables.ChainHookPrerouting, "input": nftables.ChainHookInput,
		"forward": nftables.ChainHookForward, "output": nftables.ChainHookOutput, "postrouting": nftables.ChainHookPostrouting}
	policies = map[gateway.Verdict]nftables.ChainPolicy{gateway.Accept: nftables.ChainPolicyAccept, gateway.Drop: nftables.ChainPolicyDrop}
)

// Apply gives the kernel a ruleset, in one transaction that takes the place of
// a table of the same name, and compares what the kernel has then with what it
// was given. Codes: unsupported.
func Apply(r gateway.Ruleset) error {
	conn, err := nftables.New(nftables.WithSockOptions(func(c *netlink.Conn) error { return c.SetWriteBuffer(sendBuffer) }))
	if err != nil {
		return lacking(err)
	}
	if err := fill(conn, r); err != nil {
		return err
	}
	if err := conn.Flush(); err != nil {
		return lacking(err)
	}
	return compare(conn, r)
}

// lacking names what a kernel or container lacks.
func lacking(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return NoAdmin()
	case errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EINVAL):
		return &driver.Error{Code: driver.CodeUnsupported, Field: "network", Hint: "on the engine's host: modprobe -a nf_tables nft_chain_nat nft_ct nft_redir nft_masq nft_limit nft_connlimit nft_log nfnetlink_log",
			Err: fmt.Errorf("the kernel of the engine's host does not take the packet filter: nftables with sets, connection tracking, limits and address translation is needed: %w", err)}
	}
	return err
}

// NoAdmin is the refusal of a container that may not administer its network.
func NoAdmin() error {
	return &driver.Error{Code: driver.CodeUnsupported, Field: "network", Hint: "use an engine that grants CAP_NET_ADMIN to containers, as one does that runs as root on its host",
		Err: errors.New("the gateway lacks CAP_NET_ADMIN, without which nothing would be enforced")}
}

func fill(conn *nftables.Conn, r gateway.Ruleset) error {
	table := &nftables.Table{Name: r.Table, Family: nftables.TableFamilyINet}
	conn.AddTable(table) // so that there is one to delete
	conn.DelTable(table)
	conn.AddTable(table)
	sets := map[string]*nftables.Set{}
	for _, s := range r.Sets {
		set := &nftables.Set{Table: table, Name: s.Name, KeyType: nftables.TypeIPAddr, Interval: true}
		if err := conn.AddSet(set, nil); err != nil {
			return err
		}
		for part := range slices.Chunk(elements(s), perMessage) {
			if err := conn.SetAddElements(set, part); err != nil {
				return err
			}
		}
		sets[s.Name] = set
	}
	for _, c := range r.Chains {
		hook, known := hooks[c.Hook]
		policy, decided := policies[c.Policy]
		if !known || !decided {
			return fmt.Errorf("chain %s: hook %q with policy %q", c.Name, c.Hook, c.Policy)
		}
		chain := conn.AddChain(&nftables.Chain{Table: table, Name: c.Name, Type: nftables.ChainType(c.Type), Hooknum: hook,
			Priority: new(nftables.ChainPriority(c.Priority)), Policy: &policy})
		for _, rule := range c.Rules {
			exprs, err := expressions(conn, table, sets, rule)
			if err != nil {
				return fmt.Errorf("chain %s: %w", c.Name, err)
			}
			conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: exprs})
		}
	}
	return nil
}

// elements are the runs of a set: where each begins, and the address after its
// end, which the last address of all does not have.
func elements(s gateway.Set) []nftables.SetElement {
	var out []nftables.SetElement
	for _, span := range s.Spans {
		out = append(out, nftables.SetElement{Key: span.First.AsSlice()})
		if next := span.Last.Next(); next.IsValid() {
			out = append(out, nftables.SetElement{Key: next.AsSlice(), IntervalEnd: true})
		}
	}
	return out
}

// compare looks at what the kernel has: the same chains in the same places,
// with as many rules each, and the same addresses in the sets.
func compare(conn *nftables.Conn, r gateway.Ruleset) error {
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return err
	}
	have := map[string]*nftables.Chain{}
	for _, c := range chains {
		if c.Table.Name == r.Table {
			have[c.Name] = c
		}
	}
	if len(have) != len(r.Chains) {
		return fmt.Errorf("the kernel has %d chains of %d", len(have), len(r.Chains))
	}
	for _, want := range r.Chains {
		c := have[want.Name]
		if c == nil || c.Hooknum == nil || *c.Hooknum != *hooks[want.Hook] || c.Priority == nil || int(*c.Priority) != want.Priority ||
			c.Policy == nil || *c.Policy != policies[want.Policy] || string(c.Type) != want.Type {
			return fmt.Errorf("the kernel has another chain %s than it was given", want.Name)
		}
		rules, err := conn.GetRules(c.Table, c)
		if err != nil {
			return err
		}
		if len(rules) != len(want.Rules) {
			return fmt.Errorf("the kernel has %d rules of %d in chain %s", len(rules), len(want.Rules), want.Name)
		}
	}
	for _, want := range r.Sets {
		set, err := conn.GetSetByName(&nftables.Table{Name: r.Table, Family: nftables.TableFamilyINet}, want.Name)
		if err != nil {
			return err
		}
		got, err := conn.GetSetElements(set)
		if err != nil {
			return err
		}
		if !slices.Equal(marks(got), marks(elements(want))) {
			return fmt.Errorf("the kernel has other addresses in set %s than it was given", want.Name)
		}
	}
	return nil
}

// marks are the ends of runs in order. The kernel may say that nothing begins
// before the first of them.
func marks(all []nftables.SetElement) []string {
	var out []string
	for _, e := range all {
		a, _ := netip.AddrFromSlice(e.Key)
		if e.IntervalEnd && a.IsUnspecified() {
			continue
		}
		out = append(out, fmt.Sprint(a, e.IntervalEnd))
	}
	slices.Sort(out)
	return out
}
