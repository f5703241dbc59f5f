package inject

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// Bounds of a stream.
const (
	// MaxStream is the longest stream that is read, bytes.
	MaxStream    = 64 << 20
	maxDocuments = 20_000
)

// chunk is a piece of a stream: what goes before a document, and the document. All chunks together are
// the stream, byte for byte.
type chunk struct{ before, body []byte }

// split takes a stream of YAML or of JSON apart.
func split(in []byte) []chunk {
	if chunks, ok := splitJSON(in); ok {
		return chunks
	}
	return splitYAML(in)
}

// splitJSON takes JSON objects one after the other.
func splitJSON(in []byte) (chunks []chunk, ok bool) {
	if !startsJSON(in) {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(in))
	from := 0
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return append(chunks, chunk{before: in[from:]}), true
		}
		if err != nil {
			return nil, false
		}
		end := int(dec.InputOffset())
		chunks = append(chunks, chunk{in[from : end-len(raw)], in[end-len(raw) : end]})
		from = end
	}
}

func startsJSON(b []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")) }

// splitYAML splits at the lines --- and ..., which YAML has nowhere within a document.
func splitYAML(in []byte) []chunk {
	chunks := []chunk{{}}
	for len(in) > 0 {
		line := in
		if i := bytes.IndexByte(in, '\n'); i >= 0 {
			line = in[:i+1]
		}
		in = in[len(line):]
		if !marks(line) {
			last := &chunks[len(chunks)-1]
			last.body = append(last.body, line...)
			continue
		}
		rest := bytes.TrimSpace(line[3:])
		if len(rest) == 0 || rest[0] == '#' {
			chunks = append(chunks, chunk{before: line})
		} else { // --- and content in one line
			chunks = append(chunks, chunk{line[:3], bytes.Clone(line[3:])})
		}
	}
	return chunks
}

func marks(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || bytes.IndexByte([]byte(" \t\r\n"), line[3]) >= 0
}

// blank reports whether a chunk holds no document: nothing, comments or directives.
func (c chunk) blank() bool {
	for line := range bytes.Lines(c.body) {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
		if t := bytes.TrimSpace(line); len(t) > 0 && t[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

// decode is the document as an object; strict refuses repeated keys. ok is false where it is no object.
func (c chunk) decode(strict bool) (o object, ok bool, err error) {
	defer func() {
		if r := recover(); r != nil { // a fault of the YAML library must not end a program
			o, ok, err = nil, false, errors.New("cannot be read as YAML; simplify it")
		}
	}()
	data, err := c.asJSON(strict)
	if err != nil || !startsJSON(data) {
		return nil, false, err
	}
	o, err = decodeObject(data)
	return o, err == nil, err
}

// asJSON is the document in JSON.
func (c chunk) asJSON(strict bool) ([]byte, error) {
	if c.json() {
		if strict {
			return c.body, repeatedKey(c.body)
		}
		return c.body, nil
	}
	toJSON := yaml.YAMLToJSON
	if strict {
		toJSON = yaml.YAMLToJSONStrict
	}
	data, err := toJSON(c.body)
	if err != nil {
		return nil, fmt.Errorf("no YAML: %w", err)
	}
	if !c.single() {
		return nil, errors.New("something follows the document: begin the next one with a line ---")
	}
	return data, nil
}

func (c chunk) json() bool { return startsJSON(c.body) && json.Valid(c.body) }

// single reports whether the body is one document and nothing else, for a reader of YAML. The conversion reads the first
// alone, and what follows it would be lost.
func (c chunk) single() bool {
	docs := yamlv3.NewDecoder(bytes.NewReader(c.body))
	var n yamlv3.Node
	if docs.Decode(&n) != nil {
		return true // not for this reader to judge
	}
	return errors.Is(docs.Decode(&n), io.EOF)
}

// repeatedKey is an error if an object of the JSON text has a key twice.
func repeatedKey(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	type level struct {
		keys map[string]bool // nil in an array
		key  bool            // a key is next
	}
	var open []level
	for {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("no JSON: %w", err)
		}
		if n := len(open); n > 0 && open[n-1].keys != nil && t != json.Delim('}') {
			top := &open[n-1]
			if key, is := t.(string); is && top.key {
				if top.keys[key] {
					return fmt.Errorf("key %q already set", key)
				}
				top.keys[key] = true
			}
			top.key = !top.key
		}
		switch t {
		case json.Delim('{'):
			open = append(open, level{keys: map[string]bool{}, key: true})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}

// with is the chunk with another document in the place of its own, in the same language.
func (c chunk) with(o object) (chunk, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if c.json() {
		enc.SetIndent("", "    ")
	}
	if err := enc.Encode(o); err != nil {
		return c, err
	}
	before := c.before
	if bytes.HasSuffix(before, []byte("---")) { // what followed in one line begins the next
		before = append(bytes.Clone(before), '\n')
	}
	if c.json() {
		return chunk{before, bytes.TrimRight(b.Bytes(), "\n")}.closed(c.body), nil
	}
	body, err := yaml.JSONToYAML(b.Bytes())
	return chunk{before, body}, err
}

// closed ends the body with a line's end where the old one did.
func (c chunk) closed(old []byte) chunk {
	if bytes.HasSuffix(old, []byte("\n")) {
		c.body = append(c.body, '\n')
	}
	return c
}

func join(chunks []chunk) []byte {
	var b bytes.Buffer
	for _, c := range chunks {
		b.Write(c.before)
		b.Write(c.body)
	}
	return b.Bytes()
}
