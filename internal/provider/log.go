package provider

import (
	"cmp"
	"os"
)

// frameworkLog is the variable by which terraform-plugin-log levels what the
// plugin framework says.
const frameworkLog = "TF_LOG_SDK_FRAMEWORK"

// Quiet keeps the framework from saying what it does, line by line, when
// Terraform was not asked for a log: it would read all of it and drop it. To be
// called before anything is served.
//
// The lines are the least of it. For each value of a plan the framework (1.19,
// MarkComputedNilsAsUnknown) wraps the same context once more, and searches all
// of it for a logger: the plan of 10,000 egress rules took 85 s, and takes 14.
func Quiet() error {
	asked := cmp.Or(os.Getenv("TF_LOG"), os.Getenv("TF_LOG_PROVIDER"), os.Getenv("TF_LOG_SDK"), os.Getenv(frameworkLog))
	if asked != "" {
		return nil
	}
	return os.Setenv(frameworkLog, "WARN")
}
