package main

import (
	"io"
	"strings"
	"testing"
)

func TestWhatIsChosen(t *testing.T) {
	for _, c := range []struct{ args, services, target string }{
		{"python", "python", "hello/Service/hello"},
		{"go python node", "go python node", "hello/Service/hello"},
		{"-port 0 -target shop/Service/cart node", "node", "shop/Service/cart"},
		{"envoy", "go", "shop/Deployment/catalog"},
		{"-target shop/Service/cart -- ruby app.rb -v", "own", "shop/Service/cart"},
	} {
		o, err := parse(strings.Fields(c.args), io.Discard)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		var names []string
		for _, s := range o.services {
			names = append(names, s.name)
		}
		if got := strings.Join(names, " "); got != c.services || o.target != c.target || o.policies == "" {
			t.Errorf("%s: runs %q for %s with %s", c.args, got, o.target, o.policies)
		}
	}
	o, err := parse([]string{"--", "ruby", "app.rb", "-v"}, io.Discard)
	if err != nil || strings.Join(o.services[0].command, " ") != "ruby app.rb -v" {
		t.Errorf("one's own command: %v, %v", o.services, err)
	}
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"":                       "name what to run",
		"cobol":                  "cobol: want go, python and node",
		"go go":                  "each once",
		"envoy go":               "envoy alone",
		"go -- ruby app.rb":      "one of them",
		"-target shop/orders go": "NAMESPACE/KIND/NAME",
		"-cluster":               "not defined",
	} {
		var errs strings.Builder
		if code := command(t.Context(), strings.Fields(args), io.Discard, &errs); code != 2 || !strings.Contains(errs.String(), want) {
			t.Errorf("%q: exit code %d, %s; want 2 and %q", args, code, errs.String(), want)
		}
	}
}
