package scenario

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// encode is decoding turned round: it makes a node of a value, without the fields that are as in usual.
func encode(v, usual reflect.Value) *yaml.Node {
	switch x := v.Interface().(type) {
	case time.Duration:
		return bare(short(x))
	case v1alpha1.Duration:
		return bare(short(x.Duration))
	case v1alpha1.Overcommit:
		if _, isNumber := x.Part(); isNumber {
			return bare(string(x))
		}
	case Fault:
		return encodeFault(v)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem(), reflect.Zero(v.Type().Elem()))
	case reflect.Struct:
		return encodeStruct(v, usual)
	case reflect.Slice:
		return encodeList(v)
	case reflect.Map:
		return encodeTexts(v)
	case reflect.String:
		return quoted(v.String())
	case reflect.Bool:
		return bare(strconv.FormatBool(v.Bool()))
	case reflect.Float64:
		return bare(number(v.Float()))
	case reflect.Uint64:
		return bare(strconv.FormatUint(v.Uint(), 10))
	default:
		return bare(strconv.FormatInt(v.Int(), 10))
	}
}

// bare is a scalar whose text says by itself what it is.
func bare(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// quoted is a string, in quotes where its text needs them.
func quoted(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func number(f float64) string {
	if a := math.Abs(f); a >= 1e-6 && a < 1e15 || a == 0 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func encodeStruct(v, usual reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("write") != "always" && reflect.DeepEqual(v.Field(i).Interface(), usual.Field(i).Interface()) {
			continue
		}
		put(n, tagName(v.Type().Field(i)), encode(v.Field(i), usual.Field(i)))
	}
	return flowed(n)
}

// put adds a field.
func put(n *yaml.Node, name string, value *yaml.Node) {
	n.Content = append(n.Content, quoted(name), value)
}

func encodeList(v reflect.Value) *yaml.Node {
	if v.Type() == indicesType && v.IsNil() {
		return bare(allPods)
	}
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range v.Len() {
		n.Content = append(n.Content, encode(v.Index(i), reflect.Zero(v.Type().Elem())))
	}
	return flowed(n)
}

func encodeTexts(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	texts := v.Interface().(map[string]string)
	for _, name := range sortedKeys(texts) {
		put(n, name, quoted(texts[name]))
	}
	return flowed(n)
}

// encodeFault writes what the fault's kind needs, and what it may have where it is not zero.
func encodeFault(v reflect.Value) *yaml.Node {
	f := v.Interface().(Fault)
	needed, optional := fieldsFor(f.Kind)
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.NumField() {
		name := tagName(v.Type().Field(i))
		if name == "kind" || slices.Contains(needed, name) || slices.Contains(optional, name) && !v.Field(i).IsZero() {
			put(n, name, encode(v.Field(i), v.Field(i)))
		}
	}
	return flowed(n)
}

// flowed writes what holds scalars alone in one line.
func flowed(n *yaml.Node) *yaml.Node {
	if !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Kind != yaml.ScalarNode }) {
		n.Style = yaml.FlowStyle
	}
	return n
}
