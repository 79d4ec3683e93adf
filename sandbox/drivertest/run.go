package drivertest

import "testing"

// Run judges the backend that h opens. It fails t for every check that fails,
// and for every one that is skipped unless h.MaySkip says why.
func Run(t *testing.T, h Harness) {
	t.Helper()
	b, err := h.Open(t.Context())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	var results []Result
	for _, c := range Checks() {
		if !c.Applies(b.Info()) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			r := Judge(t.Context(), b, h, c)
			results = append(results, r)
			switch {
			case r.Verdict == Failed, r.Verdict == Skipped && h.MaySkip == "":
				t.Errorf("%s: %v", r.Verdict, r.Err)
			case r.Verdict == Skipped:
				t.Logf("%v; %s", r.Err, h.MaySkip)
			}
		})
	}
	t.Logf("%s: %s, of %d checks in all", b.Info().Name, Summary(results), len(Checks()))
}
