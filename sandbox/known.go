package sandbox

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/redact"
)

// maxKnown bounds how many secrets a sandbox remembers; the newest count.
const maxKnown = 64

// known are the secrets that the commands of one sandbox were given. A program
// may put its own into the name of a file or hand it to another, so that every
// later operation's error and Record may hold it.
type known struct {
	mu      sync.Mutex
	secrets []Secret
	redact  redact.Redactor
}

// add remembers secrets and gives what takes out all that are known.
func (k *known) add(secrets map[string]Secret) redact.Redactor {
	k.mu.Lock()
	defer k.mu.Unlock()
	fresh := false
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		s := secrets[name]
		same := func(old Secret) bool { return old.Reveal() == s.Reveal() }
		if !slices.ContainsFunc(k.secrets, same) {
			k.secrets, fresh = append(k.secrets, s), true
		}
	}
	if !fresh {
		return k.redact
	}
	if over := len(k.secrets) - maxKnown; over > 0 {
		k.secrets = slices.Clone(k.secrets[over:])
	}
	values := make([]string, 0, 2*len(k.secrets))
	for _, s := range k.secrets {
		// A program that asks for a secret as a host asks in lower case.
		values = append(values, s.Reveal(), strings.ToLower(s.Reveal()))
	}
	k.redact = redact.New(values...)
	return k.redact
}
