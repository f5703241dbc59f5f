package main

import (
	"bytes"
	"fmt"
	"reflect"
	"sort"
	"strings"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/configfile"
)

const head = `<!-- Generated from api/config by go generate ./api/config. Do not edit. -->
# Configuration of the programs

Each program reads one YAML file (` + "`--config FILE`" + `), strictly: an unknown key, a repeated one or a wrong type is
refused with its line, all of them at once (` + "`PROGRAM validate --config FILE`" + `). Flags hold over the file, the file over
the defaults. A key's flag is given beside it; a list or map is given by commas or by repeating the flag. Durations are
written ` + "`50ms`, `5s`, `1m`" + `. Passwords and keys come from files, never from here or from flags.
`

// reference is the page of all programs' settings.
func reference(docs map[string]string) ([]byte, error) {
	sidecar, aggregator, controller := config.DefaultSidecar(), config.DefaultAggregator(), config.DefaultController()
	tool, check := config.DefaultTool(), config.DefaultCheck()
	var b bytes.Buffer
	b.WriteString(head)
	for _, p := range []struct {
		name   string
		config any
	}{{"weir-sidecar", &sidecar}, {"weir-aggregator", &aggregator}, {"weir-controller", &controller}, {"weir apply", &tool}, {"weir check", &check}} {
		typ := reflect.TypeOf(p.config).Elem()
		fmt.Fprintf(&b, "\n## %s\n", p.name)
		if err := table(&b, docs, typ, configfile.Fields(p.config)); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// table writes a program's own settings first, then a section for each group.
func table(b *bytes.Buffer, docs map[string]string, program reflect.Type, fields []configfile.Field) error {
	section := func(f configfile.Field) string { return f.Path[:max(0, strings.LastIndex(f.Path, "."))] }
	sort.SliceStable(fields, func(i, j int) bool { return section(fields[i]) == "" && section(fields[j]) != "" })
	for i, f := range fields {
		if i == 0 || section(f) != section(fields[i-1]) {
			heading(b, docs, program, f.Owner, section(f))
		}
		doc := docs[f.Owner+"."+f.Name]
		if doc == "" {
			return fmt.Errorf("%s.%s has no comment: every setting says what it is for", f.Owner, f.Name)
		}
		fmt.Fprintf(b, "| `%s` | `--%s` | %s | %s | %s |\n", f.Path, f.Flag, f.TypeName(), code(f.Text()), cell(sentence(f.Name, doc)))
	}
	return nil
}

func heading(b *bytes.Buffer, docs map[string]string, program reflect.Type, owner, section string) {
	if section == "" {
		fmt.Fprintf(b, "\n%s\n", sentence(program.Name(), docs[owner]))
	} else {
		fmt.Fprintf(b, "\n### %s: %s\n\n%s\n", strings.ToLower(program.Name()), section, sentence(owner, docs[owner]))
	}
	fmt.Fprint(b, "\n| key | flag | type | default | what it is for |\n|---|---|---|---|---|\n")
}

// sentence drops the Go name that a comment begins with.
func sentence(name, doc string) string {
	for _, verb := range []string{" is ", " are ", ": "} {
		if rest, ok := strings.CutPrefix(doc, name+verb); ok {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return doc
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// cell keeps a table's row on one line.
func cell(doc string) string { return strings.ReplaceAll(doc, "|", `\|`) }
