package webhook

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// operation is one step of a JSON Patch (RFC 6902).
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// differ collects the steps from one tree of decoded JSON to another. What both have is not in the patch: an
// item put into a list is one step, wherever it stands. Items are told apart by their names.
type differ struct {
	ops []operation
	err error
}

// patchFrom is the JSON Patch from one object to another, nil where they are equal.
func patchFrom(from, to map[string]any) ([]byte, error) {
	var d differ
	d.object("", from, to)
	if d.err != nil || len(d.ops) == 0 {
		return nil, d.err
	}
	return json.Marshal(d.ops)
}

func (d *differ) step(op, path string, value any) {
	o := operation{Op: op, Path: path}
	if op != "remove" {
		var err error
		if o.Value, err = json.Marshal(value); err != nil && d.err == nil {
			d.err = err
		}
	}
	d.ops = append(d.ops, o)
}

func (d *differ) value(path string, from, to any) {
	if a, ok := from.(map[string]any); ok {
		if b, ok := to.(map[string]any); ok {
			d.object(path, a, b)
			return
		}
	}
	if a, ok := from.([]any); ok {
		if b, ok := to.([]any); ok {
			d.list(path, a, b)
			return
		}
	}
	if !reflect.DeepEqual(from, to) {
		d.step("replace", path, to)
	}
}

func (d *differ) object(path string, from, to map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, ok := to[key]; !ok {
			d.step("remove", path+"/"+escape(key), nil)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if was, ok := from[key]; ok {
			d.value(path+"/"+escape(key), was, to[key])
		} else {
			d.step("add", path+"/"+escape(key), to[key])
		}
	}
}

// list walks both lists at once; i is the place in the list as it is after the steps so far.
func (d *differ) list(path string, from, to []any) {
	i := 0
	for len(from) > 0 || len(to) > 0 {
		here := path + "/" + strconv.Itoa(i)
		switch {
		case len(to) == 0, len(from) > 0 && !alike(from[0], to[0]) && !holds(to[1:], from[0]):
			d.step("remove", here, nil)
			from = from[1:]
		case len(from) == 0, !alike(from[0], to[0]):
			d.step("add", here, to[0])
			to, i = to[1:], i+1
		default:
			d.value(here, from[0], to[0])
			from, to, i = from[1:], to[1:], i+1
		}
	}
}

func holds(list []any, item any) bool {
	return slices.ContainsFunc(list, func(other any) bool { return alike(other, item) })
}

// alike reports whether two items are versions of one: of one name, or without names.
func alike(a, b any) bool { return nameOf(a) == nameOf(b) }

func nameOf(item any) string {
	o, _ := item.(map[string]any)
	name, _ := o["name"].(string)
	return name
}

func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
