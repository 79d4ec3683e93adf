package codes

import (
	"errors"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Entry explains one code.
type Entry struct {
	Code    driver.Code `json:"code"`
	Title   string      `json:"title"`   // what is true, in a few words
	Meaning string      `json:"meaning"` // for someone who has just seen it
	Causes  []string    `json:"causes"`  // the usual ones, the most usual first
	Steps   []Step      `json:"steps"`   // what to do, in this order
	Retry   string      `json:"retry"`   // whether the same call may work later
	Example Example     `json:"example"`
}

// Step is one thing to do, with its command if there is one.
type Step struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// Example is an error of that code as it looks.
type Example struct {
	Error string `json:"error"`
	Fix   string `json:"fix,omitempty"`
}

// Of finds the entry of a code.
func Of(c driver.Code) (Entry, bool) {
	for _, e := range All() {
		if e.Code == c {
			return e, true
		}
	}
	return Entry{}, false
}

// shown is how the command line prints an error: its fix apart.
func shown(e driver.Error) Example {
	fix := e.Hint
	e.Hint = ""
	return Example{e.Error(), fix}
}

func because(text string) error { return errors.New(text) }
