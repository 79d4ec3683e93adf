package pid1

import (
	"fmt"
	"os"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// Main is the guest program: args are the process's without its name, the
// result its exit status.
func Main(args []string) int {
	mode := ""
	if len(args) > 0 {
		mode = args[0]
	}
	var err error
	switch mode {
	case "init":
		return runInit(args)
	case "bridge":
		err = bridge(os.Stdin, os.Stdout)
	case "probe":
		err = probe(os.Stdout)
	case "files":
		err = fileHelper(os.Stdin, os.Stdout)
	case "true": // succeeds if it could be started at all
	default:
		err = fmt.Errorf("this program is PID 1 of a sandbox; run it with the arguments that sandboxio gives it")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandboxio-guest:", err)
		return 1
	}
	return 0
}

func runInit(args []string) int {
	boot, err := wire.ParseBoot(args)
	if err == nil {
		err = run(boot)
	}
	fmt.Fprintln(os.Stderr, "sandboxio-guest:", err)
	return wire.ExitBoot
}
