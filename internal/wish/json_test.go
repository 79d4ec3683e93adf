package wish

import (
	"strings"
	"testing"
)

func TestErrorsInJSONAreInWordsOfJSON(t *testing.T) {
	t.Parallel()
	type rule struct {
		Host  string   `json:"host"`
		Ports []uint16 `json:"ports"`
		On    bool     `json:"on"`
	}
	for text, want := range map[string]string{
		`{"rules":[{"host":"a.example","ports":[443],"on":true}]}`: "",
		`{"rules":[{"host":7}]}`:                                   "rules.host: a number stands where a string belongs",
		`{"rules":[{"ports":"443"}]}`:                              "rules.ports: a string stands where a list belongs",
		`{"rules":[{"ports":[70000]}]}`:                            "rules.ports: a number 70000 stands where a whole number from 0 to 65535 belongs",
		`{"rules":[{"ports":[1.5]}]}`:                              "rules.ports: a number 1.5 stands where a whole number from 0 to 65535 belongs",
		`{"rules":[{"on":"yes"}]}`:                                 "rules.on: a string stands where true or false belongs",
		`{"rules":[{"host":[]}]}`:                                  "rules.host: a list stands where a string belongs",
		`{"rules":[{"host":{}}]}`:                                  "rules.host: an object stands where a string belongs",
		`{"rules":[{"host":true}]}`:                                "rules.host: true or false stands where a string belongs",
		`{"rules":["a.example"]}`:                                  "rules: a string stands where an object belongs",
		`[]`:                                                       "a list stands where an object belongs",
		`{"rule":[]}`:                                              `unknown field "rule"`,
		`{"rules":[`:                                               "it ends within the JSON value",
		``:                                                         "there is no JSON value",
		"{\n\"rules\":\n[,]}":                                      "line 3: it is no JSON",
		`{} {}`:                                                    "something follows the JSON value",
	} {
		var into struct {
			Rules []rule `json:"rules"`
		}
		err := JSON([]byte(text), &into)
		if want == "" {
			if err != nil || len(into.Rules) != 1 || into.Rules[0].Ports[0] != 443 {
				t.Errorf("%s: %+v, %v", text, into, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

// A text means what it says: the decoder would take names in any letters, and
// the last of two.
func TestJSONTakesNamesAsTheyAreAndOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"host": "a", "rules": [{"host": "b"}]}`: "",
		`{"Host": "a"}`:                               `unknown field "Host"`,
		`{"ho\u017ft": "a"}`:                          `unknown field "ho\u017ft"`,
		`{"host": "a", "host": "b"}`:                  `"host" stands twice`,
		`{"rules": [{"host": "a", "\u0068ost": ""}]}`: `"host" stands twice`,
		`{"rules": [{}, {"HOST": "a"}]}`:              `unknown field "HOST"`,
	} {
		var into struct {
			Host  string `json:"host"`
			Rules []struct {
				Host string `json:"host"`
			} `json:"rules"`
		}
		err := JSON([]byte(text), &into)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
