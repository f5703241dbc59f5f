package configfile

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxFile bounds a configuration file, bytes.
const MaxFile = 1 << 20

// Error is one thing that is wrong in a file. Path is the setting's, "" for the file itself.
type Error struct {
	File   string
	Line   int
	Path   string
	Reason string
}

// Error is file:line: path: reason.
func (e Error) Error() string {
	place := e.File
	if e.Line > 0 {
		place += ":" + strconv.Itoa(e.Line)
	}
	if e.Path != "" {
		place += ": " + e.Path
	}
	return place + ": " + e.Reason
}

// Errors are all that is wrong in a file, in the order of its lines.
type Errors []Error

// Error is a line for each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Decode sets in the struct that v points to what the YAML document in data says, and leaves the rest
// as it is. Unknown and repeated keys, wrong types and more than one document are refused, all of
// them at once as Errors; v is then partly set and not to be used. An empty document says nothing.
func Decode(file string, data []byte, v any) error {
	d := decoder{file: file}
	if len(data) > MaxFile {
		d.fail(0, "", fmt.Sprintf("%d bytes, at most %d: this is no configuration file", len(data), MaxFile))
		return d.errs
	}
	root, ok := d.document(data)
	if ok && root != nil {
		d.object(root, reflect.ValueOf(v).Elem(), "")
	}
	if len(d.errs) == 0 {
		return nil
	}
	sort.SliceStable(d.errs, func(i, j int) bool { return d.errs[i].Line < d.errs[j].Line })
	return d.errs
}

type decoder struct {
	file string
	errs Errors
}

func (d *decoder) fail(line int, path, reason string) {
	d.errs = append(d.errs, Error{d.file, line, path, reason})
}

// document is the root node; nil for an empty document.
func (d *decoder) document(data []byte) (*yaml.Node, bool) {
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, true
	}
	if err == nil {
		if err = dec.Decode(&more); err == nil {
			d.fail(more.Line, "", "a second document: a configuration file holds one")
			return nil, false
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		line, reason := syntaxError(err)
		d.fail(line, "", "not YAML: "+reason)
		return nil, false
	}
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		return nil, true
	}
	return doc.Content[0], true
}

// syntaxError takes the line out of the parser's message.
func syntaxError(err error) (line int, reason string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	m := regexp.MustCompile(`^line (\d+): (.*)$`).FindStringSubmatch(text)
	if m == nil {
		return 0, text
	}
	line, _ = strconv.Atoi(m[1])
	return line, m[2]
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// object fills a struct from a mapping.
func (d *decoder) object(n *yaml.Node, v reflect.Value, path string) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fail(n.Line, path, "want keys and values here, not "+kindName(n))
		return
	}
	known := map[string]int{}
	for i := range v.NumField() {
		known[key(v.Type().Field(i))] = i
	}
	d.pairs(n, path, func(k, value *yaml.Node, at string) {
		i, ok := known[k.Value]
		if !ok {
			d.fail(k.Line, at, "unknown setting"+suggestion(k.Value, known))
			return
		}
		d.value(value, v.Field(i), at)
	})
}

// pairs walks a mapping and refuses repeated keys, merge keys and keys that are no text.
func (d *decoder) pairs(n *yaml.Node, path string, each func(k, value *yaml.Node, at string)) {
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		at := strings.TrimPrefix(path+"."+k.Value, ".")
		if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
			d.fail(k.Line, path, "a key is plain text here")
			continue
		}
		if first, again := lines[k.Value]; again {
			d.fail(k.Line, at, fmt.Sprintf("given again; first on line %d", first))
			continue
		}
		lines[k.Value] = k.Line
		each(k, value, at)
	}
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		d.fail(n.Line, path, "aliases are not taken here: write the value out")
		return
	}
	switch {
	case v.Kind() == reflect.Struct:
		d.object(n, v, path)
	case isNull(n):
		// As if it were not there: the default holds.
	case v.Kind() == reflect.Slice:
		d.list(n, v, path)
	case v.Kind() == reflect.Map:
		d.strings(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n.Line, path, "want a list, not "+kindName(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.scalar(item, out.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(out)
}

func (d *decoder) strings(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n.Line, path, "want keys and values here, not "+kindName(n))
		return
	}
	out := reflect.MakeMap(v.Type())
	d.pairs(n, path, func(k, value *yaml.Node, at string) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.scalar(value, item, at)
		out.SetMapIndex(reflect.ValueOf(k.Value), item)
	})
	v.Set(out)
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	want := typeName(v.Type())
	if n.Kind != yaml.ScalarNode {
		d.fail(n.Line, path, "want "+article(want)+", not "+kindName(n))
		return
	}
	if bad := tagMismatch(want, n); bad != "" {
		d.fail(n.Line, path, bad)
		return
	}
	parsed, err := parse(v.Type(), n.Value)
	if err != nil {
		d.fail(n.Line, path, err.Error())
		return
	}
	v.Set(parsed)
}

// tagMismatch holds a scalar to the type that YAML sees in it, so that no: or 1.0 is not taken for a
// string by accident, nor "5" for a number.
func tagMismatch(want string, n *yaml.Node) string {
	tag := n.ShortTag()
	ok := tag == map[string]string{"string": "!!str", "duration": "!!str", "bool": "!!bool", "integer": "!!int", "number": "!!float"}[want] ||
		want == "number" && tag == "!!int" || want == "duration" && n.Value == "0"
	switch {
	case ok:
		return ""
	case want == "string":
		return fmt.Sprintf("want a string: put %s in quotes", n.Value)
	case want == "duration":
		return fmt.Sprintf("%q is no duration: write a number and a unit, such as 500ms, 5s or 1m", n.Value)
	default:
		return fmt.Sprintf("want %s, not %q", article(want), n.Value)
	}
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	default:
		return fmt.Sprintf("%q", n.Value)
	}
}

func article(word string) string {
	if word == "integer" {
		return "an integer"
	}
	return "a " + word
}
