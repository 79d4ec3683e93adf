package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func (a *app) policyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "Review plans, and look at the rules",
	}
	c.AddCommand(a.policyCheckCommand(), a.policyListCommand(), a.policyExplainCommand(), a.policyTestCommand(), a.policyDocsCommand())
	return c
}

// rules are the flags that say what judges.
type rules struct {
	sources []string
	params  []string
	mode    string
}

// rulesFlags adds the flags that every command on rules has.
func rulesFlags(c *cobra.Command, r *rules) {
	c.Flags().StringArrayVar(&r.sources, "policy", nil, "a directory of rules of your own, as DIR or NAME=DIR; repeatable. They can only add findings")
}

// judgeFlags adds those that change what rules say.
func judgeFlags(c *cobra.Command, r *rules) {
	rulesFlags(c, r)
	c.Flags().StringArrayVar(&r.params, "param", nil, "a parameter, as name=value with the value in JSON; repeatable")
	c.Flags().StringVar(&r.mode, "mode", "enforce", `"enforce", or "advise" to warn where rules deny`)
}

// options are what package policy is told.
func (r rules) options() (policy.Options, error) {
	var o policy.Options
	var err error
	if o.Mode, err = policy.ParseMode(r.mode); err != nil {
		return o, err
	}
	for _, s := range r.sources {
		o.Sources = append(o.Sources, parseSource(s))
	}
	for _, p := range r.params {
		name, text, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return o, driver.Invalid("param", fmt.Sprintf("%q is not name=value", p), "write --param max_lifetime_seconds=3600")
		}
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			v = text // a bare word
		}
		if o.Params == nil {
			o.Params = map[string]any{}
		}
		o.Params[name] = v
	}
	return o, nil
}

var notInName = regexp.MustCompile(`[^a-z0-9_]+`)

// parseSource reads NAME=DIR, or DIR, whose last part is the name then.
func parseSource(s string) policy.Source {
	if name, dir, ok := strings.Cut(s, "="); ok {
		return policy.Source{Name: name, Dir: dir}
	}
	dir := s
	if abs, err := filepath.Abs(s); err == nil {
		dir = abs
	}
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(filepath.Base(dir)), "_"), "_")
	return policy.Source{Name: name, Dir: s}
}
