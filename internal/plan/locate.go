package plan

import (
	"fmt"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// locate finds an attribute in a resource's block, or the nearest thing that
// encloses it.
func locate(block *hcl.Block, attr []any) (hcl.Range, bool) {
	if len(attr) == 0 {
		return block.DefRange, true
	}
	return inBody(block.Body, block.DefRange, attr)
}

// inBody looks in a body for attributes and nested blocks; whole is what
// stands for the body.
func inBody(body hcl.Body, whole hcl.Range, attr []any) (hcl.Range, bool) {
	name, ok := attr[0].(string)
	if !ok {
		return whole, false
	}
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		attributes, _ := body.JustAttributes()
		a, ok := attributes[name]
		if !ok {
			return whole, false
		}
		return inExpr(a.Expr, a.Range, attr[1:])
	}
	if a, ok := native.Attributes[name]; ok {
		return inExpr(a.Expr, a.SrcRange, attr[1:])
	}
	var made []*hclsyntax.Block
	for _, b := range native.Blocks {
		if b.Type == "dynamic" && len(b.Labels) == 1 && b.Labels[0] == name {
			return b.DefRange(), false // how many it makes is not known from the text
		}
		if b.Type == name {
			made = append(made, b)
		}
	}
	rest, index := attr[1:], 0
	if len(rest) > 0 {
		switch step := rest[0].(type) {
		case int:
			index, rest = step, rest[1:]
		case like:
			rest = rest[1:]
			index = closest(len(made), step.value, func(i int) (any, any) { return bodyValue(made[i].Body) })
			if index < 0 && len(made) > 0 {
				return made[0].DefRange(), false
			}
		}
	}
	switch {
	case index < 0 || index >= len(made):
		return whole, false
	case len(rest) == 0:
		return made[index].DefRange(), true
	}
	return inBody(made[index].Body, made[index].DefRange(), rest)
}

// closest is the index of the only text that agrees with a value; one that is
// written out in full wins over those that might be anything. It is -1 when
// there is none, or no telling.
func closest(n int, value any, text func(int) (value, unknown any)) int {
	var certain, possible []int
	for i := range n {
		v, unknown := text(i)
		if !resembles(v, unknown, value) {
			continue
		}
		if hasTrue(unknown) {
			possible = append(possible, i)
		} else {
			certain = append(certain, i)
		}
	}
	switch {
	case len(certain) == 1:
		return certain[0]
	case len(certain) == 0 && len(possible) == 1:
		return possible[0]
	}
	return -1
}

// resembles reports whether what is known of a text agrees with a value.
func resembles(text, unknown, value any) bool {
	if unknown == true {
		return true
	}
	switch t := text.(type) {
	case map[string]any:
		v, ok := value.(map[string]any)
		marks, _ := unknown.(map[string]any)
		for k := range t {
			if !ok || !resembles(t[k], marks[k], v[k]) {
				return false
			}
		}
		return ok
	case []any:
		v, ok := value.([]any)
		marks, _ := unknown.([]any)
		if !ok || len(v) != len(t) {
			return false
		}
		for i := range t {
			var m any
			if i < len(marks) {
				m = marks[i]
			}
			if !resembles(t[i], m, v[i]) {
				return false
			}
		}
		return true
	case nil:
		return true // null may be a default
	}
	return fmt.Sprint(text) == fmt.Sprint(value) // "80" and 80 are the same to Terraform
}

// inExpr follows a path into objects and lists that are written out; whole is
// what stands for the expression, its name included.
func inExpr(e hcl.Expression, whole hcl.Range, attr []any) (hcl.Range, bool) {
	for {
		if p, ok := e.(*hclsyntax.ParenthesesExpr); ok {
			e = p.Expression
			continue
		}
		break
	}
	if len(attr) == 0 {
		return whole, literal(e)
	}
	switch step := attr[0].(type) {
	case string:
		pairs, diags := hcl.ExprMap(e)
		if diags.HasErrors() {
			return whole, false
		}
		for _, kv := range pairs {
			if key, ok := keyOf(kv.Key); ok && key == step {
				return inExpr(kv.Value, hcl.RangeBetween(kv.Key.Range(), kv.Value.Range()), attr[1:])
			}
		}
	case int:
		items, diags := hcl.ExprList(e)
		if !diags.HasErrors() && step >= 0 && step < len(items) {
			return inExpr(items[step], items[step].Range(), attr[1:])
		}
	case like:
		items, diags := hcl.ExprList(e)
		if diags.HasErrors() {
			break
		}
		if i := closest(len(items), step.value, func(i int) (any, any) { return exprValue(items[i]) }); i >= 0 {
			return inExpr(items[i], items[i].Range(), attr[1:])
		}
	}
	return whole, false
}

// literal reports whether an expression is written out, rather than taken from
// elsewhere.
func literal(e hcl.Expression) bool { return len(e.Variables()) == 0 }

// keyOf is the key of an object's member, when it is written out.
func keyOf(e hcl.Expression) (string, bool) {
	if word := hcl.ExprAsKeyword(e); word != "" {
		return word, true
	}
	v, diags := e.Value(noValues)
	if diags.HasErrors() || v.IsNull() || !v.IsKnown() {
		return "", false
	}
	text, ok := plainValue(v)
	switch t := text.(type) {
	case string:
		return t, ok
	case bool:
		return strconv.FormatBool(t), ok
	}
	return "", false
}
