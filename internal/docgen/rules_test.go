package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// proof is how docs/rules.md names a test: `package.TestName`, with /Subtest where it is one.
var proof = regexp.MustCompile("`([a-z0-9_/-]+)\\.((?:Test|Fuzz|Benchmark)\\w*)(?:/(\\w+))?`")

// scope are the cases that docs/rules.md must prove: all.
var scope = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26}

// Every rule names a test or says that it is open, and every test that is named is in the tree.
func TestRulesAreProvenByTestsThatExist(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "docs", "rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, sources := 0, map[string]string{}
	for i, line := range strings.Split(string(data), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| rule |") || strings.HasPrefix(line, "| case |") {
			continue
		}
		rows++
		named := proof.FindAllStringSubmatch(line, -1)
		if len(named) == 0 && !strings.Contains(line, "**open**") {
			t.Errorf("line %d names no test and is not open: %s", i+1, line)
		}
		if n := strings.Count(line, ".Test") + strings.Count(line, ".Fuzz") + strings.Count(line, ".Benchmark"); n != len(named) {
			t.Errorf("line %d: %d tests can be read of %d: %s", i+1, len(named), n, line)
		}
		for _, p := range named {
			if err := exists(root, sources, p[1], p[2], p[3]); err != nil {
				t.Errorf("line %d: %v", i+1, err)
			}
		}
	}
	if rows < 100 {
		t.Errorf("only %d rows were read", rows)
	}
	for _, n := range scope {
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %d \|.*$`, n)).FindString(string(data))
		if !regexp.MustCompile(fmt.Sprintf(`Case%02d|And%02d`, n, n)).MatchString(row) {
			t.Errorf("case %d has no row with a test that bears its number: %s", n, row)
		}
	}
}

// exists is an error where a package has no such test. sources holds what was read before.
func exists(root string, sources map[string]string, pkg, name, sub string) error {
	text, ok := sources[pkg]
	if !ok {
		files, _ := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			text += string(data)
		}
		sources[pkg] = text
	}
	if !strings.Contains(text, "\nfunc "+name+"(") {
		return fmt.Errorf("%s has no %s", pkg, name)
	}
	if sub != "" && !strings.Contains(text, `"`+sub+`"`) {
		return fmt.Errorf("%s has no %s/%s", pkg, name, sub)
	}
	return nil
}
