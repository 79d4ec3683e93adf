package plan

import (
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
	rest, index := attr[1:], 0
	if len(rest) > 0 {
		if i, ok := rest[0].(int); ok {
			index, rest = i, rest[1:]
		}
	}
	n := 0
	for _, b := range native.Blocks {
		switch {
		case b.Type == "dynamic" && len(b.Labels) == 1 && b.Labels[0] == name:
			// How many it makes is not known from the text.
			return b.DefRange(), false
		case b.Type != name:
			continue
		case n < index:
			n++
			continue
		case len(rest) == 0:
			return b.DefRange(), true
		}
		return inBody(b.Body, b.DefRange(), rest)
	}
	return whole, false
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
