package wish

import (
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Word gives a host with an optional port, "bücher.example:443", in ASCII, as
// driver.ParseRule wants it. What is no such word is given back as it is, for
// the reader of the word to refuse. Code: invalid.
func Word(field, word string) (string, error) {
	if strings.ContainsAny(word, "/[]") || strings.Count(word, ":") > 1 {
		return word, nil
	}
	host, port, ok := strings.Cut(word, ":")
	host, err := Host(field, host)
	if ok {
		host += ":" + port
	}
	return host, err
}

// ParseRule is driver.ParseRule for names in any script, told for a field.
// Codes: invalid.
func ParseRule(field, word string) (driver.Rule, error) {
	ascii, err := Word(field, word)
	if err != nil {
		return driver.Rule{}, err
	}
	r, err := driver.ParseRule(ascii)
	if err == nil {
		err = Rule(field, r)
	}
	var errs []error
	for _, p := range driver.Problems(err) {
		moved := *p
		moved.Field = field
		errs = append(errs, &moved)
	}
	return r, driver.Join(errs...)
}
