package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// The floor is a signed bundle that the environment names, not the
// configuration under review, which may be stricter than it and never more
// lenient: its mode is the most lenient there may be, its parameters are where
// the configuration's begin, only its waivers excuse what it and the built-in
// rules say. An attempt is the finding SBX-POL-001, which denies. A floor that is
// named and cannot be used is an error of Load.
const (
	// FloorVariable names the variable with the bundle's file.
	FloorVariable = "SANDBOXIO_POLICY_FLOOR"
	// FloorKeyVariable names the variable with the public key that must have
	// signed it: the key in PEM, or a file that holds it.
	FloorKeyVariable = "SANDBOXIO_POLICY_FLOOR_KEY"
	// FloorRevisionVariable names the variable with the least revision that is
	// taken; empty takes any.
	FloorRevisionVariable = "SANDBOXIO_POLICY_FLOOR_REVISION"
)

// floorOf reads the floor that the environment names; nil when it names none.
func floorOf(ctx context.Context, getenv func(string) string) (*contents, error) {
	file, key, least := getenv(FloorVariable), getenv(FloorKeyVariable), getenv(FloorRevisionVariable)
	if file == "" {
		if key != "" || least != "" {
			return nil, driver.Invalid(FloorVariable, fmt.Sprintf("%s or %s is set, and no floor is named", FloorKeyVariable, FloorRevisionVariable),
				"set "+FloorVariable+" to the bundle, or unset the others")
		}
		return nil, nil
	}
	b := Bundle{From: File(file), Key: key}
	if key == "" {
		return nil, driver.Invalid(FloorKeyVariable, "nothing says which key signs the floor", "set "+FloorKeyVariable+" to the public key, or to a file that holds it")
	}
	if !strings.Contains(key, "-----BEGIN") {
		raw, err := readKey(key)
		if err != nil {
			// What does not look like a key may still be one: it is not repeated.
			return nil, driver.Invalid(FloorKeyVariable, "it is neither a key in PEM nor a file with one: "+err.Error(), "set "+FloorKeyVariable+" to the public key in PEM, or to a file that holds it")
		}
		b.Key = string(raw)
	}
	if least != "" {
		n, err := strconv.ParseUint(least, 10, 64)
		if err != nil {
			return nil, driver.Invalid(FloorRevisionVariable, fmt.Sprintf("%q is no revision", least), "set "+FloorRevisionVariable+" to a number")
		}
		b.MinRevision = n
	}
	c, err := b.read(ctx)
	if err != nil {
		return nil, bundleError(FloorVariable, file+", which "+FloorVariable+" names", err)
	}
	c.place = file
	c.from = file + ", which " + FloorVariable + " names"
	return c, nil
}

// maxKey is more than a key in PEM takes.
const maxKey = 64 << 10

// readKey reads a file with a key. Its error does not name the file.
func readKey(name string) ([]byte, error) {
	err := regular(os.Stat(name))
	if err == nil {
		var f *os.File
		if f, err = os.Open(name); err == nil {
			var raw []byte
			raw, err = io.ReadAll(io.LimitReader(f, maxKey))
			if err = errors.Join(err, f.Close()); err == nil {
				return raw, nil
			}
		}
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return nil, err
}

// foundation is what a floor settles; the zero value is none.
type foundation struct {
	floored  bool
	settings *settings // nil = none in the floor
	sets     []string  // whose rules only the floor grants exemptions from
}

// settle gives the parameters in force, and sets the mode. Where the
// configuration is more lenient than the floor, the floor holds.
func (e *Engine) settle(base foundation, all []*ruleset, opts Options) (map[string]any, error) {
	choices, most := declared(all), Enforce
	if s := base.settings; s != nil {
		mode, err := ParseMode(s.Mode)
		if err != nil {
			return nil, floorSetting("mode", err)
		}
		most = mode
		floor, _, err := choose(FloorVariable+".params.", choices, s.Params)
		if err != nil {
			return nil, err
		}
		for name, v := range floor {
			p := choices[name]
			p.Default = v
			choices[name] = p
		}
	}
	given, looser, err := choose("policy.params.", choices, opts.Params)
	if err != nil {
		return nil, err
	}
	weak := func(effect sandbox.Decision, at, format string, args ...any) {
		e.weak = append(e.weak, ownFinding(weakenedID, effect, at, fmt.Sprintf(format, args...)))
	}
	values := map[string]any{}
	for name, p := range choices {
		values[name] = p.Default
		v, chosen := given[name]
		switch {
		case !chosen:
		case looser[name] && base.floored && slices.Contains(base.sets, p.set):
			weak(sandbox.Deny, "policy.params."+name, "the parameter %s is looser than the floor's %v, which holds", name, p.Default)
		default:
			values[name] = v
			if looser[name] {
				weak(sandbox.Warn, "policy.params."+name, "the parameter %s is looser than the rule's own", name)
			}
		}
	}
	switch {
	case e.mode == Enforce:
	case base.floored && most == Enforce:
		e.mode = Enforce
		weak(sandbox.Deny, "policy.mode", "the mode is advise, and the floor's enforce holds")
	default:
		weak(sandbox.Warn, "policy.mode", "the mode is advise: what would be denied is only warned of")
	}
	return values, nil
}

func floorSetting(name string, err error) error {
	return driver.Invalid(FloorVariable+"."+name, err.Error(), "mend the settings of the floor that "+FloorVariable+" names")
}
