package policy

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// decoder fills a document's types from YAML nodes by their json tags, strictly, and remembers
// where each field is written.
type decoder struct {
	checker
	nodes  *int     // values read so far in the file
	full   bool     // a bound was met and said
	unread []string // paths of the fields that could not be read
}

// reject says why a field cannot be read.
func (d *decoder) reject(field, reason, remedy string) {
	d.unread = append(d.unread, field)
	d.fail(field, reason, remedy)
}

func (d *decoder) decode(n *yaml.Node, doc *v1alpha1.QuotaPolicy) {
	d.value("", n, reflect.ValueOf(doc).Elem())
}

var (
	durationType = reflect.TypeFor[v1alpha1.Duration]()
	textType     = reflect.TypeFor[string]()
)

func (d *decoder) value(field string, n *yaml.Node, v reflect.Value) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if !d.enter(field) {
		return
	}
	if isNull(n) {
		d.reject(field, "has no value", "give it one, or remove the field")
		return
	}
	if v.Type() == durationType {
		d.duration(field, n, v)
		return
	}
	d.kind(field, n, v)
}

func (d *decoder) kind(field string, n *yaml.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(field, n, v.Elem())
	case reflect.Struct:
		d.object(field, n, v)
	case reflect.Slice:
		d.list(field, n, v)
	case reflect.Map:
		d.texts(field, n, v)
	case reflect.String:
		if d.scalar(field, n, "!!str", "a string") {
			d.text(field, n.Value, v)
		}
	case reflect.Bool:
		if d.scalar(field, n, "!!bool", "true or false") {
			d.decodeInto(field, n, v)
		}
	case reflect.Float64:
		if n.ShortTag() == "!!int" || d.scalar(field, n, "!!float", "a number") {
			d.decodeInto(field, n, v)
		}
	default:
		if d.scalar(field, n, "!!int", "a whole number") {
			d.decodeInto(field, n, v)
		}
	}
}

// text sets a string; of the words to choose from, each type of its own, none is empty.
func (d *decoder) text(field, value string, v reflect.Value) {
	if value == "" && v.Type() != textType {
		d.reject(field, "is empty", "give it a value, or remove the field")
		return
	}
	v.SetString(value)
}

// enter counts a value, those behind an alias each time, and reports whether the bound allows it. The
// depth is bounded by the document's types.
func (d *decoder) enter(field string) bool {
	*d.nodes++
	if d.full {
		return false
	}
	if *d.nodes > maxNodes {
		d.full = true
		d.reject(field, "the file has too many values", fmt.Sprintf("keep it under %d, and without aliases that multiply", maxNodes))
	}
	return !d.full
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func (d *decoder) scalar(field string, n *yaml.Node, tag, want string) bool {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == tag {
		return true
	}
	remedy := ""
	if n.Kind == yaml.ScalarNode && tag == "!!str" {
		remedy = fmt.Sprintf("quote it: %q", clip(n.Value))
	}
	d.reject(field, "want "+want+", got "+describe(n), remedy)
	return false
}

func (d *decoder) decodeInto(field string, n *yaml.Node, v reflect.Value) {
	if err := n.Decode(v.Addr().Interface()); err != nil {
		d.reject(field, fmt.Sprintf("%q is out of range or no number", clip(n.Value)), "")
	}
}

// describe names what a node is.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	default:
		return map[string]string{"!!str": "the string", "!!int": "the number", "!!float": "the number", "!!bool": "the boolean"}[n.ShortTag()] +
			" " + strconv.Quote(clip(n.Value))
	}
}

func (d *decoder) duration(field string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.reject(field, "want a duration such as 1s, got "+describe(n), "")
		return
	}
	span, err := v1alpha1.ParseDuration(n.Value)
	if err != nil {
		d.reject(field, fmt.Sprintf("%q is no duration", clip(n.Value)), durationRemedy)
		return
	}
	v.Set(reflect.ValueOf(span))
}

const durationRemedy = "want a number with ms, s, m or h, such as 500ms, 1s, 1m"

func (d *decoder) list(field string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.reject(field, "want a list, got "+describe(n), "")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		path := at(field, i)
		d.where[path] = position{item.Line, item.Column}
		d.value(path, item, v.Index(i))
	}
}

// texts reads a map of strings: labels, annotations.
func (d *decoder) texts(field string, n *yaml.Node, v reflect.Value) {
	m := reflect.MakeMap(v.Type())
	d.pairs(field, n, func(path string, key, value *yaml.Node) {
		text := reflect.New(v.Type().Elem()).Elem()
		d.value(path, value, text)
		m.SetMapIndex(reflect.ValueOf(key.Value), text)
	})
	v.Set(m)
}

func (d *decoder) object(field string, n *yaml.Node, v reflect.Value) {
	d.pairs(field, n, func(path string, key, value *yaml.Node) {
		if i, ok := fieldNamed(v.Type(), key.Value); ok {
			d.value(path, value, v.Field(i))
			return
		}
		d.fail(path, "is not a known field", unknownFieldRemedy(key.Value, fieldNames(v.Type())))
	})
}

func unknownFieldRemedy(key string, known []string) string {
	if key == "<<" {
		return "write the fields out: merge keys are not read"
	}
	return suggest(key, known) + "known here: " + strings.Join(known, ", ")
}

// pairs walks an object's fields and refuses repeated ones.
func (d *decoder) pairs(field string, n *yaml.Node, each func(path string, key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.reject(field, "want an object, got "+describe(n), "")
		return
	}
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			d.failAt(key, field, "has a field whose name is "+describe(key), "want a string")
			continue
		}
		path := join(field, clip(key.Value))
		if first, dup := seen[key.Value]; dup {
			d.failAt(key, path, fmt.Sprintf("is already set at line %d", first), "keep one of them")
			continue
		}
		seen[key.Value] = key.Line
		d.where[path] = position{key.Line, key.Column}
		each(path, key, n.Content[i+1])
	}
}

func (d *decoder) failAt(n *yaml.Node, field, reason, remedy string) {
	d.add(&Error{File: d.file, Line: n.Line, Col: n.Column, Field: field, Reason: reason, Remedy: remedy})
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

func fieldNamed(t reflect.Type, name string) (int, bool) {
	for i := range t.NumField() {
		if tagName(t.Field(i)) == name {
			return i, true
		}
	}
	return 0, false
}

func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = tagName(t.Field(i))
	}
	return names
}

func tagName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
