package obs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	docs     = "../../docs"
	runbooks = docs + "/runbooks.md"
)

func document(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sections of a page by their heading of the second level.
func sections(page string) map[string]string {
	out := map[string]string{}
	for _, s := range strings.Split(page, "\n## ")[1:] {
		heading, body, _ := strings.Cut(s, "\n")
		body, _, _ = strings.Cut(body, "\n# ")
		out[heading] = body
	}
	return out
}

// What a person who was woken needs, in this order: what it means, what is felt, where to look, what to do.
var told = []string{"**It means**", "**Users see**", "**Look first**", "\n1. ", "\n2. ", "\n3. ", "**Mend**", "**Silence**"}

func TestEachAlertHasItsRunbook(t *testing.T) {
	all := sections(document(t, runbooks))
	delete(all, "How to ask")
	for _, a := range alerts(t) {
		body, there := all[a.Alert]
		if !there {
			t.Errorf("%s: no section in %s", a.Alert, runbooks)
		}
		delete(all, a.Alert)
		for _, part := range told {
			_, rest, found := strings.Cut(body, part)
			if !found {
				t.Errorf("%s: its section lacks %q, or has it elsewhere", a.Alert, part)
				break
			}
			body = rest
		}
	}
	if len(all) > 0 {
		t.Errorf("sections of no alert: %v", slices.Sorted(maps.Keys(all)))
	}
}

var (
	code     = regexp.MustCompile("`([^`]+)`")
	fences   = regexp.MustCompile("(?s)```\n(.*?)```")
	command  = regexp.MustCompile(`(?:^|[\s/])(weir(?:-aggregator|-sidecar|-controller)?) ([a-z][a-z-]+)( [a-z][a-z-]*)?`)
	heading  = regexp.MustCompile(`(?m)^## (.+)$`)
	relative = regexp.MustCompile(`\]\(([^):#]+)(?:#[^)]*)?\)`)
)

// What is told to be run is there: subcommands, as the reference pages have them.
func TestTheRunbooksCommandsAreThere(t *testing.T) {
	known := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(commandPages(t), -1) {
		known[m[1]] = true
	}
	found := 0
	for _, text := range codes(document(t, runbooks)) {
		m := command.FindStringSubmatch(text)
		if m == nil || strings.Contains(text, "amtool") || strings.HasPrefix(text, "helm ") {
			continue
		}
		found++
		one := m[1] + " " + m[2]
		if !known[one] && !known[one+m[3]] {
			t.Errorf("`%s`: there is no %s", text, one)
		}
	}
	if found < 20 {
		t.Errorf("only %d commands were read", found)
	}
}

func commandPages(t *testing.T) string {
	t.Helper()
	paths, err := filepath.Glob(docs + "/reference/weir*.md")
	if err != nil || len(paths) < 3 {
		t.Fatalf("%v, %v", paths, err)
	}
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(document(t, p))
	}
	return b.String()
}

// codes are the code spans and the lines of code blocks.
func codes(page string) (all []string) {
	for _, m := range fences.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(m[1]) {
			line, _, _ = strings.Cut(line, "#")
			all = append(all, strings.TrimSpace(line))
		}
	}
	for _, m := range code.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		all = append(all, m[1])
	}
	return all
}

var query = regexp.MustCompile(`^[a-z].*\bweir_(?:sidecar|aggregator|controller)_`)

// Queries that a person is to paste are held against the metrics as those of alerts are.
func TestTheRunbooksQueriesAskForWhatProgramsHave(t *testing.T) {
	c := known(t)
	found := 0
	for _, path := range []string{runbooks, docs + "/operate.md"} {
		for _, text := range codes(document(t, path)) {
			if name := strings.HasPrefix(text, "weir_"); !name && !query.MatchString(text) {
				continue
			}
			found++
			if _, err := c.check(text); err != nil {
				t.Errorf("%s: `%s`: %v", path, text, err)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d queries were read", found)
	}
}

func TestPagesThatAreLinkedAreThere(t *testing.T) {
	for _, path := range []string{runbooks, docs + "/operate.md"} {
		for _, m := range relative.FindAllStringSubmatch(document(t, path), -1) {
			if _, err := os.Stat(filepath.Join(docs, m[1])); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

var alertRow = regexp.MustCompile(`(?m)^\| (Weir\w+) \| (\w+) \| .+ \|$`)

func TestTheTableOfAlertsIsWhole(t *testing.T) {
	want, got := map[string]string{}, map[string]string{}
	for _, a := range alerts(t) {
		want[a.Alert] = a.Labels["severity"]
	}
	for _, m := range alertRow.FindAllStringSubmatch(document(t, docs+"/operate.md"), -1) {
		got[m[1]] = m[2]
	}
	if !maps.Equal(want, got) {
		t.Errorf("the table of alerts in operate.md is %v, the alerts are %v", got, want)
	}
}
