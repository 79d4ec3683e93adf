package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/audit"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func (a *app) auditCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Look after audit files",
	}
	c.AddCommand(a.auditVerifyCommand())
	return c
}

func (a *app) auditVerifyCommand() *cobra.Command {
	var head string
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check that no line of an audit file was changed, removed or inserted",
		Long: `Check the hash chain of an audit file from its first line to its last, and name
the first line that is wrong. A file named - is the standard input.

The chain alone does not show that its newest lines are missing, or that all of
it was made up: for that, note its head where the file's writer cannot reach,
and give it with --expect-head. The line with that hash must be there; lines
that were added since may follow it.

Exits with 1 when a line is wrong or the expected head is not there.`,
		Example: `  sandboxio audit verify audit.jsonl
  sandboxio audit verify audit.jsonl --expect-head sha256:9f86d0… --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("expect-head") && head == "" {
				return driver.Invalid("expect-head", "it is empty", "write sha256: and 64 hexadecimal digits, or leave it out")
			}
			return a.auditVerify(args[0], head)
		},
	}
	a.jsonFlag(c)
	c.Flags().StringVar(&head, "expect-head", "", "hash of a line that must be there, as an earlier run printed it")
	return c
}

func (a *app) auditVerify(name, head string) error {
	in := a.In
	if name != "-" {
		f, err := os.Open(name)
		if info, serr := os.Stat(name); err == nil && serr == nil && info.IsDir() {
			_ = f.Close()
			err = fmt.Errorf("%s is a directory", name)
		}
		if err != nil {
			return &driver.Error{Code: driver.CodeUnavailable, Op: "audit verify", Err: err, Hint: "name an audit file that this user may read"}
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	rep, err := audit.Verify(in, audit.VerifyOptions{Head: head})
	out := struct {
		File      string `json:"file"`
		OK        bool   `json:"ok"`
		Records   uint64 `json:"records"`
		Repairs   uint64 `json:"repairs"`
		Head      string `json:"head"`
		Expected  string `json:"expected_head"`
		AfterHead uint64 `json:"after_expected_head"`
		Where     string `json:"where"` // "line 7", "head"; "" when all is well
		Problem   string `json:"problem"`
	}{File: name, OK: err == nil, Records: rep.Records, Repairs: rep.Repairs, Head: rep.Head.Hash, Expected: head, AfterHead: rep.After}
	if e, ok := errors.AsType[*driver.Error](err); ok {
		out.Where, out.Problem = e.Field, e.Err.Error()
	}
	if perr := a.print(out, func(w io.Writer) {
		if err != nil {
			fmt.Fprintf(w, "FAIL  %s, after %s\n", name, count(rep.Records, "good record"))
			return
		}
		fmt.Fprintf(w, "ok    %s: %s", name, count(rep.Records, "record"))
		if rep.Repairs > 0 {
			fmt.Fprintf(w, ", %s", count(rep.Repairs, "repair")+" after a crash")
		}
		fmt.Fprintf(w, "\nhead  %s\n", rep.Head.Hash)
		if head == "" {
			fmt.Fprintln(w, "Without --expect-head it cannot be seen whether the newest lines are missing.")
		} else {
			fmt.Fprintf(w, "The expected head is there, with %s after it.\n", count(rep.After, "line"))
		}
	}); perr != nil {
		return perr
	}
	return err
}

// count is a number with its noun.
func count(n uint64, noun string) string {
	if n != 1 {
		if stem, ok := strings.CutSuffix(noun, "y"); ok {
			noun = stem + "ie"
		}
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
