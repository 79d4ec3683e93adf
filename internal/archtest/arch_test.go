package archtest

import (
	"path/filepath"
	"testing"
)

const module = "github.com/sandboxio/terraform-provider-sandboxio"

func TestHouse(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	house, err := readTree(root, module)
	if err != nil {
		t.Fatal(err)
	}

	report := func(name, why string, found []finding) {
		t.Run(name, func(t *testing.T) {
			for _, f := range found {
				t.Errorf("%s\n\twhy: %s", f, why)
			}
		})
	}
	for _, r := range importRules {
		report(r.name, r.why, r.check(house))
	}
	for _, r := range vocabularyRules {
		report(r.name, r.why, r.check(house))
	}
	report("a backend is reached through its own door", "options, defaults and the judge are at the door", backendDoors(house))
	report("packages say what is inside", "what has no name of its own collects what has no place", namelessRooms(house))
	report("files hold one idea", "a file that nobody reads to its end hides things", longFiles(house))
	report("importing does nothing", "whoever imports a package did not ask it to run", initialisers(house))
	report("rules name what exists", "a rule on a package that is gone binds nobody", gone(named(), planned, house.dirs()))

	for _, goos := range []string{"linux", "darwin", "windows"} {
		packages, err := goList(t.Context(), root, goos, house)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, r := range reachRules {
			report(r.name+" on "+goos, r.why, r.check(packages))
		}
	}
}
