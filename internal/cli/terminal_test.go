package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestWhatAnybodyCanHaveWrittenDoesNotActOnATerminal(t *testing.T) {
	const evil, told = "für \x1b[2J\u202e\t\nuns", "für ?[2J???uns"
	var out bytes.Buffer
	inspected{Name: evil, Facts: map[string]string{"owner": evil}, Labels: map[string]string{evil: evil}}.text(&out)
	for _, line := range []string{"name", "owner", "label " + told} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no line %q", line)
		}
	}
	if n := strings.Count(out.String(), told); n != 4 || strings.ContainsAny(out.String(), "\x1b\u202e\t") {
		t.Errorf("it says %q", out.String())
	}
}
