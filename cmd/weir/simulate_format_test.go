package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// The reader of scenarios tells what it knows where it is given something else; the page has all of that, in the section of
// its object.
func TestEveryFieldOfAScenarioIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "simulate.md"))
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile(`\n###? `)
	for _, tt := range []struct{ section, file, field string }{
		{"Scenario", "zz: 1", "zz"},
		{"Traffic", "traffic: [{zz: 1}]", "traffic[0].zz"},
		{"Network", "network: {zz: 1}", "network.zz"},
		{"Timing", "timing: {zz: 1}", "timing.zz"},
		{"Faults", "faults: [{zz: 1}]", "faults[0].zz"},
		{"Faults", "faults: [{kind: zz}]", "faults[0].kind"},
		{"Reference", "reference: {zz: 1}", "reference.zz"},
	} {
		_, after, _ := strings.Cut(string(page), "\n### "+tt.section+"\n")
		text := heading.Split(after, 2)[0]
		names := known(t, tt.file, tt.field)
		if len(names) < 4 {
			t.Errorf("%s: only %q are known", tt.file, names)
		}
		for _, name := range names {
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("%s: `%s` is not in the section %s", tt.file, name, tt.section)
			}
		}
	}
}

// known is what the error on a field lists.
func known(t *testing.T, file, field string) []string {
	t.Helper()
	_, err := scenario.Parse("probe", []byte(file))
	var errs policy.Errors
	if !errors.As(err, &errs) {
		t.Fatalf("%s: %v", file, err)
	}
	for _, e := range errs {
		if e.Field == field {
			_, list, ok := strings.Cut(e.Remedy, "known here: ")
			if !ok {
				list = strings.TrimPrefix(e.Remedy, "want ")
			}
			return strings.Split(strings.Replace(list, " or ", ", ", 1), ", ")
		}
	}
	return nil
}

func TestTheExamplesOfSimulateAreValid(t *testing.T) {
	dir := filepath.Join("..", "..", "examples")
	for _, tt := range []struct{ policy, traffic string }{
		{"policies/each-client.yaml", "simulate/burst.yaml"},
		{"simulate/new-limit.yaml", "simulate/peak.yaml"},
	} {
		e := &engine{}
		o := e.simulate(t, "", "--json", "--policy", filepath.Join(dir, tt.policy), "--traffic", filepath.Join(dir, tt.traffic))
		if o.code != 0 || len(e.asked) != 1 {
			t.Errorf("%s: %s", tt.traffic, o.err)
		}
	}
}

// The page's own scenario is one.
func TestTheScenarioOfThePageIsValid(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "simulate.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatal("the page shows no scenario")
	}
	if _, err := scenario.Parse("docs/simulate.md", m[1]); err != nil {
		t.Error(err)
	}
}
