package boot

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Config is all that a gateway is told. It holds no secret: it stands in the
// gateway's arguments, where it survives a restart and can be looked at.
type Config struct {
	Rules    []driver.Rule  // canonical
	Inside   netip.Prefix   // the sandbox's network, masked
	Gateway  netip.Addr     // what the gateway takes in it: the sandbox's router and resolver
	Uplink   netip.Prefix   // the network to everything else, masked
	Router   netip.Addr     // the router of the uplink
	Upstream netip.AddrPort // the name server that the resolver asks
	Protect  []driver.Range // as in egress.Options
	UID      uint32         // who resolver and router run as
	Owned    bool           // ends when its stdin does
	Lifetime time.Duration  // ends by itself after it
}

// ProxyPort is where a gateway's router listens.
const ProxyPort = 15001

// Site is where the gateway stands, given the names of its interfaces.
func (c Config) Site(inside, uplink string) gateway.Site {
	return gateway.Site{Inside: inside, Uplink: uplink, Sandbox: c.Inside, Gateway: c.Gateway, Upstream: c.Upstream,
		UID: c.UID, ProxyPort: ProxyPort, Protect: c.Protect}
}

const (
	serve = "serve"

	// maxArg is how much of a Config stands in one argument: Linux takes
	// 128 KiB in each, and 2 MiB in all with the environment.
	maxArg  = 96 << 10
	maxArgs = 1536 << 10

	// maxConfig bounds what is unpacked.
	maxConfig = 32 << 20
)

// Args are the gateway's arguments. Codes: unsupported, when there are too
// many rules to be told.
func (c Config) Args() ([]string, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(z).Encode(c); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	text := base64.StdEncoding.EncodeToString(b.Bytes())
	if len(text) > maxArgs {
		return nil, driver.Unsupported("network.egress", fmt.Sprintf("%d rules take %d bytes, packed, and a gateway is told at most %d", len(c.Rules), len(text), maxArgs),
			"use fewer rules, or wider ones")
	}
	args := []string{serve}
	for len(text) > 0 {
		n := min(len(text), maxArg)
		args = append(args, text[:n])
		text = text[n:]
	}
	return args, nil
}

// ParseArgs reads Config.Args.
func ParseArgs(args []string) (Config, error) {
	var c Config
	if len(args) < 2 || args[0] != serve {
		return c, driver.Invalid("arguments", "they are none that a gateway is started with", "sandboxes start their gateways themselves")
	}
	packed, err := base64.StdEncoding.DecodeString(strings.Join(args[1:], ""))
	if err != nil {
		return c, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return c, err
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxConfig+1))
	if err != nil {
		return c, err
	}
	if len(plain) > maxConfig {
		return c, fmt.Errorf("the configuration has more than %d bytes", maxConfig)
	}
	if err := json.Unmarshal(plain, &c); err != nil {
		return Config{}, err
	}
	return c, c.validate()
}

// validate refuses what gateway.Firewall does not look at.
func (c Config) validate() error {
	switch {
	case !c.Uplink.IsValid() || c.Uplink != c.Uplink.Masked() || !c.Uplink.Contains(c.Router) || c.Uplink.Overlaps(c.Inside):
		return driver.Invalid("uplink", "its router is not in it, or it overlaps the sandbox's network", "give two networks, and a router of the second")
	case c.Lifetime <= 0:
		return driver.Invalid("lifetime", "it is not positive", "every gateway ends")
	}
	return nil
}
