package egress

// Reason says why a request was allowed or refused. Its values are data: they
// stand in records and in what is printed as JSON, and are never renamed.
type Reason string

const (
	Allowed Reason = "allowed"

	// What the rules say.
	NoRules   Reason = "no-rules"
	Malformed Reason = "malformed"
	Host      Reason = "host"
	Port      Reason = "port"
	Address   Reason = "address"
	Protected Reason = "protected"

	// What the gateway says of a request that the rules may allow.
	Unpinned     Reason = "unpinned"
	Unresolved   Reason = "unresolved"
	QueryType    Reason = "query-type"
	Rate         Reason = "rate"
	Capacity     Reason = "capacity"
	Protocol     Reason = "protocol"
	NoServerName Reason = "no-server-name"
	Encrypted    Reason = "encrypted-hello"
	BadTLS       Reason = "bad-tls"
	BadHTTP      Reason = "bad-http"
	Upgrade      Reason = "upgrade"
	OtherHost    Reason = "other-host"
	Slow         Reason = "slow"
	Unreachable  Reason = "unreachable"
	NotTCP       Reason = "not-tcp"
)

var reasonTexts = map[Reason]string{
	Allowed:      "a rule allows it",
	NoRules:      "there are no rules, and nothing is allowed that no rule names",
	Malformed:    "it is no host name, address or port",
	Host:         "no rule names this host",
	Port:         "rules name the target, and none of them on this port",
	Address:      "no rule holds this address, and a rule for a host opens only what the gateway resolved for that host",
	Protected:    "the address is protected, and no rule names its range or a part of it",
	Unpinned:     "the address is none that the gateway resolved for this host",
	Unresolved:   "the name does not resolve",
	QueryType:    "only addresses are resolved",
	Rate:         "too many names were asked for",
	Capacity:     "too many connections are open, or begin at once",
	Protocol:     "it begins neither as TLS nor as HTTP/1",
	NoServerName: "TLS names no server (SNI)",
	Encrypted:    "TLS hides the name of the server (Encrypted ClientHello)",
	BadTLS:       "its ClientHello is malformed",
	BadHTTP:      "its HTTP request is malformed or ambiguous",
	Upgrade:      "it asks for another protocol than HTTP/1",
	OtherHost:    "it names another host than the connection was opened for",
	Slow:         "it did not say in time what it wants",
	Unreachable:  "the allowed address did not answer",
	NotTCP:       "only TCP is let through",
}

// Text is the reason in words.
func (r Reason) Text() string {
	if t, ok := reasonTexts[r]; ok {
		return t
	}
	return string(r)
}

// Known reports whether it is one of the reasons that there are.
func (r Reason) Known() bool {
	_, ok := reasonTexts[r]
	return ok
}
