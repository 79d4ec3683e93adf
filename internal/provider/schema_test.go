package provider_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
)

// served is the schema as Terraform gets it.
func served(t testing.TB) *tfprotov6.GetProviderSchemaResponse {
	t.Helper()
	server, err := acctest.Server(t.Context(), provider.Options{})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatal(err, resp.Diagnostics)
	}
	return resp
}

// walk visits every attribute, nested ones included.
func walk(prefix string, b *tfprotov6.SchemaBlock, visit func(string, *tfprotov6.SchemaAttribute)) {
	var attributes func(string, []*tfprotov6.SchemaAttribute)
	attributes = func(prefix string, all []*tfprotov6.SchemaAttribute) {
		for _, a := range all {
			visit(prefix+a.Name, a)
			if a.NestedType != nil {
				attributes(prefix+a.Name+".", a.NestedType.Attributes)
			}
		}
	}
	attributes(prefix, b.Attributes)
	for _, n := range b.BlockTypes {
		walk(prefix+n.TypeName+".", n.Block, visit)
	}
}

func TestEveryAttributeSaysWhatAReaderNeedsToKnow(t *testing.T) {
	t.Parallel()
	resp := served(t)
	blocks := map[string]*tfprotov6.SchemaBlock{"provider": resp.Provider.Block}
	for name, s := range resp.ResourceSchemas {
		blocks[name] = s.Block
	}
	for name, s := range resp.DataSourceSchemas {
		blocks["data."+name] = s.Block
	}
	seen := 0
	for name, b := range blocks {
		if b.Description == "" && name != "provider" {
			t.Errorf("%s has no description", name)
		}
		walk(name+".", b, func(at string, a *tfprotov6.SchemaAttribute) {
			seen++
			d := a.Description
			switch {
			case d == "" || a.DescriptionKind != tfprotov6.StringKindMarkdown:
				t.Errorf("%s has no Markdown description", at)
			case !strings.HasSuffix(d, "."):
				t.Errorf("%s: the description is no sentence: %q", at, d)
			case a.Required && !strings.Contains(d, "Required"):
				t.Errorf("%s: the description does not say that it is required: %q", at, d)
			case a.Optional && !strings.Contains(d, "Default: "):
				t.Errorf("%s: the description does not say what leaving it out means: %q", at, d)
			case !a.Optional && !a.Required && !strings.HasPrefix(d, "Computed: "):
				t.Errorf("%s: the description does not say that it is computed: %q", at, d)
			}
		})
	}
	if seen < 80 {
		t.Errorf("only %d attributes were seen", seen)
	}
}

var quoted = regexp.MustCompile(`"([a-z-]+)"`)

func TestDescriptionsNameAllowedValuesAndReplacement(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, make := range provider.New(provider.Options{}).Resources(t.Context()) {
		r := make()
		var s resource.SchemaResponse
		r.Schema(t.Context(), resource.SchemaRequest{}, &s)
		var meta resource.MetadataResponse
		r.Metadata(t.Context(), resource.MetadataRequest{ProviderTypeName: "sandboxio"}, &meta)
		for name, a := range flat("", s.Schema.Attributes) {
			str, ok := a.(schema.StringAttribute)
			if !ok {
				continue
			}
			for _, v := range str.Validators {
				text := v.Description(t.Context())
				if !strings.Contains(text, "one of") {
					continue
				}
				for _, m := range quoted.FindAllStringSubmatch(text, -1) {
					seen++
					if !strings.Contains(str.MarkdownDescription, "`"+m[1]+"`") {
						t.Errorf("%s.%s does not name the allowed value %q", meta.TypeName, name, m[1])
					}
				}
			}
			for _, p := range str.PlanModifiers {
				if strings.Contains(p.Description(t.Context()), "destroy and recreate") && !strings.Contains(str.MarkdownDescription, "forces replacement") {
					t.Errorf("%s.%s does not say that a change forces replacement", meta.TypeName, name)
				}
			}
			if str.Default != nil {
				seen++
				want := "Default: " + strings.TrimPrefix(str.Default.MarkdownDescription(t.Context()), "value defaults to ")
				if !strings.Contains(str.MarkdownDescription, want) {
					t.Errorf("%s.%s does not say %q", meta.TypeName, name, want)
				}
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d values were checked", seen)
	}
}

func flat(prefix string, in map[string]schema.Attribute) map[string]schema.Attribute {
	out := map[string]schema.Attribute{}
	for name, a := range in {
		out[prefix+name] = a
		switch n := a.(type) {
		case schema.SingleNestedAttribute:
			maps.Copy(out, flat(prefix+name+".", n.Attributes))
		case schema.ListNestedAttribute:
			maps.Copy(out, flat(prefix+name+".", n.NestedObject.Attributes))
		}
	}
	return out
}

func TestNothingThatLooksLikeASecretIsKept(t *testing.T) {
	t.Parallel()
	for name, s := range served(t).ResourceSchemas {
		walk(name+".", s.Block, func(at string, a *tfprotov6.SchemaAttribute) {
			if strings.HasSuffix(at, "_wo") != a.WriteOnly {
				t.Errorf("%s: write-only is %v", at, a.WriteOnly)
			}
		})
	}
}

// TestReviewsKnowTheNamesThatTheSchemaHas holds wish.Nested, by which a review
// tells names that Terraform drops, to the schema.
func TestReviewsKnowTheNamesThatTheSchemaHas(t *testing.T) {
	t.Parallel()
	resp := served(t)
	var names func(o *tfprotov6.SchemaObject) wish.Object
	names = func(o *tfprotov6.SchemaObject) wish.Object {
		out := wish.Object{}
		for _, a := range o.Attributes {
			out[a.Name] = nil
			if a.NestedType != nil {
				out[a.Name] = names(a.NestedType)
			}
		}
		if o.Nesting != tfprotov6.SchemaObjectNestingModeSingle {
			return wish.Object{wish.Each: out}
		}
		return out
	}
	nested := func(b *tfprotov6.SchemaBlock) wish.Object {
		var out wish.Object
		for _, a := range b.Attributes {
			if a.NestedType != nil && (a.Optional || a.Required) {
				if out == nil {
					out = wish.Object{}
				}
				out[a.Name] = names(a.NestedType)
			}
		}
		return out
	}
	for kind, s := range resp.ResourceSchemas {
		if diff := cmp.Diff(nested(s.Block), wish.Nested(kind)); diff != "" {
			t.Errorf("%s (-schema +wish.Nested):\n%s", kind, diff)
		}
		for _, b := range s.Block.BlockTypes {
			t.Errorf("%s has the block %s, which wish.Nested knows nothing of", kind, b.TypeName)
		}
	}
	for _, b := range resp.Provider.Block.BlockTypes {
		if diff := cmp.Diff(nested(b.Block), wish.Nested(b.TypeName)); diff != "" {
			t.Errorf("the block %s (-schema +wish.Nested):\n%s", b.TypeName, diff)
		}
	}
}
