package kernel

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/vishvananda/netlink"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
)

// asked sends packets that are told of, and asks after each how many were,
// while a reader is at it too.
func asked() error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err == nil {
		err = Apply(gateway.Ruleset{Table: "sandboxio", Chains: []gateway.Chain{{Name: "output", Type: "filter", Hook: "output", Policy: gateway.Accept,
			Rules: []gateway.PacketRule{{Proto: "udp", Ports: []uint16{9}, Verdict: gateway.Note, Why: "told"}}}}})
	}
	if err != nil {
		return err
	}
	n, err := ListenNotes()
	if err != nil {
		return err
	}
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	defer conn.Close()
	var count atomic.Int64
	take := func(packet []byte) {
		if len(packet) >= 28 && packet[9] == 17 {
			count.Add(1)
		}
	}
	var reading sync.WaitGroup
	reading.Go(func() { n.Read(take) })
	var errs []error
	for i := range int64(gateway.NoteBurst) {
		if _, err := conn.WriteToUDP([]byte("x"), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}); err != nil {
			errs = append(errs, err)
		}
		n.CatchUp(take)
		if got := count.Load(); got != i+1 {
			errs = append(errs, fmt.Errorf("after %d packets %d are known", i+1, got))
			break
		}
	}
	errs = append(errs, n.Close())
	reading.Wait() // Close ends it
	n.CatchUp(take)
	return errors.Join(errs...)
}
