package scenario

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// decoder fills structs from YAML nodes by their json tags, as the policy's types have them, strictly. Depth is bounded
// by the types, size by the file's: an alias is refused.
type decoder struct {
	*checker
	assigned map[*yaml.Node]string // nodes that are not the file's own, and the assignment each is from
}

var (
	spanType       = reflect.TypeFor[time.Duration]()
	durationType   = reflect.TypeFor[v1alpha1.Duration]()
	overcommitType = reflect.TypeFor[v1alpha1.Overcommit]()
	indicesType    = reflect.TypeFor[[]int]()
)

// allPods is what a list of pods may be instead; it is read as nil.
const allPods = "all"

// note remembers where a field is written.
func (d *decoder) note(field string, at, value *yaml.Node) {
	p := position{line: at.Line, col: at.Column}
	if text, ok := d.assigned[value]; ok {
		p = position{assignment: text}
	}
	d.where[field] = p
}

func (d *decoder) value(field string, n *yaml.Node, v reflect.Value) {
	switch {
	case d.full():
	case n.Kind == yaml.AliasNode:
		d.reject(field, "is an alias", "write the value out")
	case isNull(n):
		d.reject(field, "has no value", "give it one, or remove the field")
	case v.Type() == spanType || v.Type() == durationType:
		d.duration(field, n, v)
	case v.Type() == overcommitType:
		if d.scalar(field, n, n.ShortTag(), "Learned, None or a number") {
			v.SetString(n.Value)
		}
	case v.Type() == indicesType && n.Kind == yaml.ScalarNode:
		if n.Value != allPods {
			d.reject(field, "want all or a list of pods, got "+describe(n), "")
		}
	default:
		d.kind(field, n, v)
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

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
			v.SetString(n.Value)
		}
	case reflect.Bool:
		if d.scalar(field, n, "!!bool", "true or false") {
			d.decodeInto(field, n, v)
		}
	case reflect.Float64:
		d.number(field, n, v)
	default:
		if d.scalar(field, n, "!!int", "a whole number") {
			d.decodeInto(field, n, v)
		}
	}
}

func (d *decoder) number(field string, n *yaml.Node, v reflect.Value) {
	if n.ShortTag() != "!!int" && !d.scalar(field, n, "!!float", "a number") {
		return
	}
	d.decodeInto(field, n, v)
	if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
		d.reject(field, fmt.Sprintf("%s is not finite", clip(n.Value)), "")
	}
}

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
		return strconv.Quote(clip(n.Value))
	}
}

func (d *decoder) duration(field string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.reject(field, "want a duration such as 1s, got "+describe(n), "")
		return
	}
	span, err := time.ParseDuration(n.Value)
	if err != nil {
		d.reject(field, fmt.Sprintf("%q is no duration", clip(n.Value)), "want a number with ms, s, m or h, such as 500ms, 1s, 1m")
		return
	}
	if v.Type() == durationType {
		v.Set(reflect.ValueOf(v1alpha1.Duration{Duration: span}))
		return
	}
	v.SetInt(int64(span))
}

func (d *decoder) list(field string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.reject(field, "want a list, got "+describe(n), "")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		path := at(field, i)
		d.note(path, item, item)
		d.value(path, item, v.Index(i))
	}
}

func at(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// texts reads a map of strings: headers.
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
	return nearest(key, known) + "known here: " + strings.Join(known, ", ")
}

// pairs walks an object's fields and refuses repeated ones.
func (d *decoder) pairs(field string, n *yaml.Node, each func(path string, key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.reject(field, "want an object, got "+describe(n), "")
		return
	}
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if d.full() {
			return
		}
		if key.Kind != yaml.ScalarNode {
			d.add(position{line: key.Line, col: key.Column}, field, "has a field whose name is "+describe(key), "want a string")
			continue
		}
		path := join(field, clip(key.Value))
		if first, dup := seen[key.Value]; dup {
			d.add(position{line: key.Line, col: key.Column}, path, fmt.Sprintf("is already set at line %d", first), "keep one of them")
			continue
		}
		seen[key.Value] = key.Line
		d.note(path, key, value)
		each(path, key, value)
	}
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
