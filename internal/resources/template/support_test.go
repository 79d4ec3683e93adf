package template_test

import "fmt"

// same compares a value over steps.
type same struct{}

func (same) CompareValues(values ...any) error {
	for _, v := range values[1:] {
		if v != values[0] {
			return fmt.Errorf("changed from %v to %v", values[0], v)
		}
	}
	return nil
}
