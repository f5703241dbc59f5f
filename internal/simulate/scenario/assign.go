package scenario

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weirproxy/weir/internal/policy"
)

// Assignment sets one field of a file to another value before it is read.
type Assignment struct {
	text, value string
	path        []step
}

// step is a name, or with name "" an index.
type step struct {
	name  string
	index int
}

var pathPart = regexp.MustCompile(`^([A-Za-z0-9_-]+)((?:\[[0-9]{1,9}\])*)$`)

// ParseAssignment reads field=value: the field's path as errors write it, such as traffic[0].batch, and a value as a
// file would have it, such as 4 or [{at: 0s, value: 5}].
func ParseAssignment(text string) (Assignment, error) {
	field, value, ok := strings.Cut(text, "=")
	if !ok {
		return Assignment{}, fmt.Errorf("%q: no value; write field=value, such as rate.limit=500", clip(text))
	}
	a := Assignment{text: text, value: value}
	for part := range strings.SplitSeq(field, ".") {
		m := pathPart.FindStringSubmatch(part)
		if m == nil {
			return Assignment{}, fmt.Errorf("%q: %q is no field's name; write a path such as rate.limit or traffic[0].batch", clip(text), clip(part))
		}
		a.path = append(a.path, step{name: m[1]})
		for index := range strings.SplitSeq(strings.Trim(m[2], "[]"), "][") {
			if i, err := strconv.Atoi(index); err == nil {
				a.path = append(a.path, step{index: i})
			}
		}
	}
	if _, err := a.node(); err != nil {
		return Assignment{}, fmt.Errorf("%q: the value is no YAML; quote it: %w", clip(text), err)
	}
	return a, nil
}

// String is the text that the assignment was read from.
func (a Assignment) String() string { return clip(a.text) }

// node is the value, a new one each time.
func (a Assignment) node() (*yaml.Node, error) {
	var doc yaml.Node
	if err := next(yaml.NewDecoder(strings.NewReader(a.value)), &doc); err != nil || len(doc.Content) == 0 {
		if strings.TrimSpace(a.value) == "" {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str"}, nil
		}
		return nil, err
	}
	return doc.Content[0], nil
}

// apply puts the value into a file's nodes and notes in assigned which ones are new.
func (a Assignment) apply(root *yaml.Node, assigned map[*yaml.Node]string) *policy.Error {
	value, err := a.node()
	if err != nil {
		return &policy.Error{Reason: "the value is no YAML: " + err.Error()}
	}
	slot, field := root, ""
	for _, s := range a.path {
		var bad *policy.Error
		if slot, field, bad = s.under(slot, field); bad != nil {
			return bad
		}
		if slot.Kind == 0 {
			assigned[slot] = a.String()
		}
	}
	*slot = *value
	note(slot, a.String(), assigned)
	return nil
}

func note(n *yaml.Node, text string, assigned map[*yaml.Node]string) {
	assigned[n] = text
	for _, child := range n.Content {
		note(child, text, assigned)
	}
}

// under is the node below n that a step leads to; a field that is not there yet is added, without a kind.
func (s step) under(n *yaml.Node, field string) (*yaml.Node, string, *policy.Error) {
	if s.name == "" {
		if n.Kind != yaml.SequenceNode || s.index >= len(n.Content) {
			return nil, field, &policy.Error{Field: field, Reason: fmt.Sprintf("has %d items", items(n)), Remedy: "an index counts from 0; set the whole list to add to it"}
		}
		return n.Content[s.index], at(field, s.index), nil
	}
	if n.Kind == 0 || isNull(n) {
		*n = yaml.Node{Kind: yaml.MappingNode}
	}
	if n.Kind != yaml.MappingNode {
		return nil, field, &policy.Error{Field: field, Reason: "has no fields: it is " + describe(n), Remedy: "set it as a whole"}
	}
	path := join(field, s.name)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == s.name {
			return n.Content[i+1], path, nil
		}
	}
	added := &yaml.Node{}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.name}, added)
	return added, path, nil
}

func items(n *yaml.Node) int {
	if n.Kind != yaml.SequenceNode {
		return 0
	}
	return len(n.Content)
}
