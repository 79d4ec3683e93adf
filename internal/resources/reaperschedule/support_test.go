package reaperschedule_test

import (
	"context"
	"fmt"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

type stateOf = terraform.State

// runs compares what the backend runs, past the provider.
func runs(s driver.Scheduler, want driver.Schedule) error {
	st, err := s.Schedule(context.Background(), want.Name)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, st.Schedule, cmpopts.EquateEmpty()); diff != "" {
		return fmt.Errorf("the backend runs another schedule (-want +got):\n%s", diff)
	}
	return nil
}
