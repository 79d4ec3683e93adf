package prove

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// shownTable is what the tests with the mutants have shown. It is theirs: they
// fail when it says anything else than they find, and write it with -update.
//
//go:embed shown.json
var shownTable []byte

// Protection is what an attempt is stopped by: what was taken away when the
// tests saw it come through.
type Protection string

// shown tells it, by mode and name of the attempt.
type shown map[Mode]map[string]Protection

func readShown() (shown, error) {
	var s shown
	if err := json.Unmarshal(shownTable, &s); err != nil {
		return nil, fmt.Errorf("the table of what was shown: %w", err)
	}
	return s, nil
}
