package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	// width is of a line of comment, columns, its indent included.
	width = 110
	// flowWidth is the longest collection that is written on one line.
	flowWidth = 70
	// besideWidth is the longest comment that stands at the end of a field's line.
	besideWidth = 64
)

// document is one YAML document: an object, below a comment that says what it is for.
type document struct {
	title string
	body  any
}

// documents writes documents one after the other, with each note beside the first field that it is about. The notes are
// used up.
func documents(notes map[string]string, docs ...document) ([]byte, error) {
	var out bytes.Buffer
	for i, d := range docs {
		if i > 0 {
			out.WriteString("---\n")
		}
		out.WriteString(comment(d.title, 0))
		if d.body == nil {
			continue
		}
		if err := encode(&out, d.body, notes); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func encode(out *bytes.Buffer, body any, notes map[string]string) error {
	var root yaml.Node
	if err := root.Encode(body); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	annotate(&root, nil, 0, notes)
	compact(&root)
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := e.Encode(&root); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	return e.Close()
}

// tree is a message of Envoy's as YAML, its fields by the names that Envoy's documents give them.
func tree(m proto.Message) (*yaml.Node, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write Envoy's configuration: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil { // JSON is YAML
		return nil, fmt.Errorf("write Envoy's configuration: %w", err)
	}
	n := doc.Content[0]
	plain(n)
	return n, nil
}

// plain drops JSON's style, and says that a failed check refuses where JSON leaves a false out.
func plain(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && oldBoolean(n.Value) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		plain(c)
	}
	if n.Kind == yaml.MappingNode && strings.HasSuffix(valueOf(n, "@type"), ".ext_authz.v3.ExtAuthz") && valueOf(n, "failure_mode_allow") == "" {
		at := indexOf(n, "grpc_service") + 2
		n.Content = append(n.Content[:at:at], append([]*yaml.Node{text("failure_mode_allow"), {Kind: yaml.ScalarNode, Tag: "!!bool", Value: "false"}}, n.Content[at:]...)...)
	}
}

// oldBoolean reports whether YAML 1.1, which Envoy and kubectl read, takes the word for true or false.
func oldBoolean(word string) bool {
	switch strings.ToLower(word) {
	case "y", "n", "yes", "no", "on", "off":
		return true
	}
	return false
}

func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// indexOf is where a mapping has a key, or -1.
func indexOf(n *yaml.Node, key string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// valueOf is a mapping's scalar, "" where there is none.
func valueOf(n *yaml.Node, key string) string {
	if i := indexOf(n, key); n.Kind == yaml.MappingNode && i >= 0 && n.Content[i+1].Kind == yaml.ScalarNode {
		return n.Content[i+1].Value
	}
	return ""
}

// annotate puts the notes beside the fields. A field's path has the names of the objects that it is in: the part of
// their name, @type or kind after the last dot stands after the field that holds them.
func annotate(n *yaml.Node, path []string, indent int, notes map[string]string) {
	switch n.Kind {
	case yaml.SequenceNode:
		for _, c := range n.Content {
			annotate(c, path, indent+2, notes)
		}
	case yaml.MappingNode:
		for _, key := range []string{"name", "@type", "kind"} {
			if v := valueOf(n, key); v != "" {
				path = slices.Concat(path, []string{v[strings.LastIndexByte(v, '.')+1:]})
			}
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			field := slices.Concat(path, []string{key.Value})
			attach(key, value, take(field, notes), indent)
			annotate(value, field, indent+2, notes)
		}
	}
}

// take is the note whose key is the longest end of the path; it is taken out of notes.
func take(path []string, notes map[string]string) string {
	for i := range path {
		end := strings.Join(path[i:], "/")
		if note, ok := notes[end]; ok {
			delete(notes, end)
			return note
		}
	}
	return ""
}

func attach(key, value *yaml.Node, note string, indent int) {
	switch {
	case note == "":
	case value.Kind == yaml.ScalarNode && len(note) <= besideWidth:
		value.LineComment = "# " + note
	default:
		key.HeadComment = strings.TrimSuffix(comment(note, indent), "\n")
	}
}

// comment is text as lines of comment. Lines that begin with two spaces are left as they are.
func comment(text string, indent int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") {
			out.WriteString("#" + line + "\n")
			continue
		}
		at := 0
		for _, word := range strings.Fields(line) {
			switch {
			case at == 0:
				out.WriteString("#")
				at = indent + 1
			case at+1+len(word) > width:
				out.WriteString("\n#")
				at = indent + 1
			}
			out.WriteString(" " + word)
			at += 1 + len(word)
		}
		if at == 0 {
			out.WriteString("#")
		}
		out.WriteString("\n")
	}
	return out.String()
}

// compact writes small collections without comments on one line, and returns how long the node is so, or more than
// fits.
func compact(n *yaml.Node) int {
	const never = 1 << 16
	if n.Kind == yaml.ScalarNode {
		return len(n.Value) + lengthOf(n.HeadComment+n.LineComment, never)
	}
	length := 2
	for _, c := range n.Content {
		length += compact(c) + 2
	}
	length += lengthOf(n.HeadComment+n.LineComment, never)
	if length <= flowWidth {
		n.Style = yaml.FlowStyle
	} else if n.Kind == yaml.SequenceNode {
		alike(n.Content)
	}
	return min(length, never)
}

// alike writes all items of a list over several lines if one of them is.
func alike(items []*yaml.Node) {
	if !slices.ContainsFunc(items, func(n *yaml.Node) bool { return n.Style != yaml.FlowStyle }) {
		return
	}
	for _, n := range items {
		n.Style &^= yaml.FlowStyle
	}
}

func lengthOf(comment string, never int) int {
	if comment == "" {
		return 0
	}
	return never
}
