package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
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
	c.AddCommand(a.policyCheckCommand(), a.policyListCommand(), a.policyExplainCommand(), a.policyTestCommand(), a.policyDocsCommand(), a.policyBundleCommand())
	return c
}

// rules are the flags that say what judges.
type rules struct {
	sources []string
	key     string
	least   uint64
	params  []string
	mode    string
}

// rulesFlags adds the flags that every command on rules has.
func rulesFlags(c *cobra.Command, r *rules) {
	c.Flags().StringArrayVar(&r.sources, "policy", nil, "rules of your own, as DIR or NAME=DIR, or a bundle FILE.tar.gz or NAME=FILE.tar.gz; repeatable. They can only add findings")
	c.Flags().StringVar(&r.key, "policy-key", "", "file with the public key that must have signed the bundles")
	c.Flags().Uint64Var(&r.least, "policy-min-revision", 0, "the least revision of the bundles")
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
	bundled := slices.ContainsFunc(r.sources, func(s string) bool { return strings.HasSuffix(s, bundleExt) })
	switch {
	case r.key != "" && !bundled:
		return o, driver.Invalid("policy-key", "there is no bundle for the key to verify: directories are not signed", "name a bundle with --policy FILE.tar.gz, or leave out --policy-key")
	case r.least != 0 && !bundled:
		return o, driver.Invalid("policy-min-revision", "there is no bundle: directories have no revision", "name a bundle with --policy FILE.tar.gz, or leave out --policy-min-revision")
	}
	for _, s := range r.sources {
		src, err := r.source(s)
		if err != nil {
			return o, err
		}
		o.Sources = append(o.Sources, src)
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
		if _, twice := o.Params[name]; twice {
			return o, driver.Invalid("param", name+" is given twice", "keep one of them")
		}
		if o.Params == nil {
			o.Params = map[string]any{}
		}
		o.Params[name] = v
	}
	return o, nil
}

// source is parseSource for directories and bundles.
func (r rules) source(s string) (policy.Source, error) {
	src := parseSource(s)
	if !strings.HasSuffix(src.Dir, bundleExt) {
		return src, nil
	}
	if r.key == "" {
		return src, driver.Invalid("policy-key", "a bundle is verified, and no key is named", "add --policy-key FILE with the public key")
	}
	b, err := bundleAt(src.Dir, r.key, r.least)
	if err != nil {
		return src, err
	}
	if !strings.Contains(s, "=") {
		src.Name = "" // a bundle has its own
	}
	return policy.Source{Name: src.Name, Bundle: &b}, nil
}

// bundleAt is a bundle in a file, to be verified with the public key in another.
func bundleAt(file, key string, least uint64) (policy.Bundle, error) {
	pinned, err := readKey(key, false)
	return policy.Bundle{From: policy.File(file), Key: string(pinned), MinRevision: least}, err
}

// bundleExt tells bundles from directories.
const bundleExt = ".tar.gz"

var notInName = regexp.MustCompile(`[^a-z0-9_]+`)

// namesHelp says what a set of rules is called, in the help of commands that take one.
const namesHelp = `NAME is what the set of rules in DIR is called, and must be the one in its packages:
those of acme=DIR are custom.acme.…, their tests too. Without NAME= it is the last
part of DIR in lower case, in which _ stands for all but letters, digits and _.
Give a set the same name everywhere: here, with --policy, and in the provider's
policy.sources.`

// parseSource reads NAME=DIR, or DIR, whose last part is the name then.
func parseSource(s string) policy.Source {
	if name, dir, ok := strings.Cut(s, "="); ok {
		return policy.Source{Name: name, Dir: dir}
	}
	dir := s
	if abs, err := filepath.Abs(s); err == nil {
		dir = abs
	}
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(strings.TrimSuffix(filepath.Base(dir), bundleExt)), "_"), "_")
	return policy.Source{Name: name, Dir: s}
}
