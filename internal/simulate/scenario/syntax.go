package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weirproxy/weir/internal/policy"
)

// MaxFile is the largest file that Parse reads, bytes.
const MaxFile = 4 << 20

// parseNode reads a file's one document.
func parseNode(name string, data []byte) (*yaml.Node, *policy.Error) {
	if len(data) > MaxFile {
		return nil, &policy.Error{File: name, Reason: fmt.Sprintf("has %d bytes, at most %d", len(data), MaxFile), Remedy: "say it with less"}
	}
	root, bad := parseDocument(name, data)
	if bad == nil {
		return root, nil
	}
	// People write titles as text: one with a colon in it is no YAML, but there is no doubt what it says.
	if again := quoteTitle(data); again != nil {
		if root, stillBad := parseDocument(name, again); stillBad == nil {
			return root, nil
		}
	}
	return nil, bad
}

var bareTitle = regexp.MustCompile(`(?m)^title:[ \t]+([^"'|>&*!\[{\s][^\r\n]*: [^\r\n]*)`)

// quoteTitle puts quotes around a title that has a colon; nil if there is none.
func quoteTitle(data []byte) []byte {
	m := bareTitle.FindSubmatchIndex(data)
	if m == nil {
		return nil
	}
	quoted := "'" + strings.ReplaceAll(strings.TrimSpace(string(data[m[2]:m[3]])), "'", "''") + "'"
	return slices.Concat(data[:m[2]], []byte(quoted), data[m[3]:])
}

func parseDocument(name string, data []byte) (*yaml.Node, *policy.Error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := next(dec, &doc)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, syntaxError(name, err)
	}
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		return nil, &policy.Error{File: name, Reason: "is empty", Remedy: "give pods, a rate or policy, duration and traffic"}
	}
	switch err := next(dec, &more); {
	case errors.Is(err, io.EOF):
		return doc.Content[0], nil
	case err != nil:
		return nil, syntaxError(name, err)
	default:
		return nil, &policy.Error{
			File: name, Line: more.Line, Col: more.Column,
			Reason: "has a second document", Remedy: "write each scenario into a file of its own",
		}
	}
}

// next reads a document; a fault of the YAML library must not end a program.
func next(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be read: %v", r)
		}
	}()
	return dec.Decode(n)
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

func syntaxError(name string, err error) *policy.Error {
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	e := &policy.Error{File: name, Reason: "no YAML: " + text}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		e.Reason = "no YAML: " + m[2]
		if line, convErr := strconv.Atoi(m[1]); convErr == nil {
			e.Line, e.Col = line, 1
		}
	}
	return e
}
