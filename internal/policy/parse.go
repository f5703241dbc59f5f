package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// Bounds of a file.
const (
	// MaxDocument is the largest file that Parse reads, bytes.
	MaxDocument = 1 << 20
	maxDocs     = 1000
	maxNodes    = 100_000 // values read, those behind an alias each time
	maxErrors   = 100     // told of a file
)

// Parse reads and validates the documents of a file, YAML or JSON; name is what errors call it. It is
// strict: unknown fields, wrong types and repeated names are errors. The error is an Errors with everything that
// is wrong in the file; then no document is returned.
func Parse(name string, data []byte) ([]*v1alpha1.QuotaPolicy, error) {
	if len(data) > MaxDocument {
		return nil, Errors{{File: name, Reason: fmt.Sprintf("has %d bytes, at most %d", len(data), MaxDocument), Remedy: "split the file"}}
	}
	roots, errs := parseNodes(name, data)
	p := &parser{file: name, seen: make(map[string]position)}
	for _, root := range roots {
		p.document(root)
	}
	errs = append(p.errs, errs...)
	if len(errs) > 0 {
		return nil, errs.clipped(name, p.more)
	}
	return p.docs, nil
}

// clipped sorts errors and keeps their list readable; more is how many were not even collected.
func (e Errors) clipped(file string, more int) Errors {
	e.sort()
	if len(e) > maxErrors {
		more += len(e) - maxErrors
		e = e[:maxErrors:maxErrors]
	}
	if more > 0 {
		e = append(e, &Error{File: file, Reason: fmt.Sprintf("%d more errors", more)})
	}
	return e
}

// parseNodes reads the syntax; after an error of it nothing more can be read.
func parseNodes(name string, data []byte) (roots []*yaml.Node, errs Errors) {
	defer func() {
		if r := recover(); r != nil { // a fault of the YAML library must not end a program
			errs = Errors{{File: name, Reason: "cannot be read as YAML", Remedy: "simplify it"}}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(spacesForTabs(data)))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return roots, errs
		}
		if err != nil {
			return roots, Errors{syntaxError(name, err)}
		}
		if len(roots) == maxDocs {
			return roots, Errors{{File: name, Reason: fmt.Sprintf("has more than %d documents", maxDocs), Remedy: "split the file"}}
		}
		roots = append(roots, &n)
	}
}

// spacesForTabs lets JSON that is indented by tabs pass as YAML. JSON has none within strings.
func spacesForTabs(data []byte) []byte {
	if bytes.IndexByte(data, '\t') < 0 || !json.Valid(data) {
		return data
	}
	return bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

func syntaxError(name string, err error) *Error {
	e := &Error{File: name, Reason: "no YAML: " + err.Error()}
	if m := yamlLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " ")); m != nil {
		e.Reason = "no YAML: " + m[2]
		if line, convErr := strconv.Atoi(m[1]); convErr == nil {
			e.Line, e.Col = line, 1
		}
	}
	return e
}

// parser turns nodes into documents.
type parser struct {
	file  string
	docs  []*v1alpha1.QuotaPolicy
	seen  map[string]position
	nodes int
	errs  Errors
	more  int
}

func (p *parser) document(root *yaml.Node) {
	if len(root.Content) == 0 || isNull(root.Content[0]) {
		return // nothing between two ---
	}
	d := &decoder{checker: checker{file: p.file, where: positions{"": {root.Content[0].Line, root.Content[0].Column}}}, nodes: &p.nodes}
	doc := &v1alpha1.QuotaPolicy{}
	d.decode(root.Content[0], doc)
	found := len(d.errs)
	if !d.full { // else half of it was not read
		d.document(doc)
		p.once(d, doc)
	}
	p.errs = append(p.errs, d.withoutEchoes(found)...)
	p.more += d.more
	p.docs = append(p.docs, doc)
}

// once refuses a second document of one name.
func (p *parser) once(d *decoder, doc *v1alpha1.QuotaPolicy) {
	name := namespaceOf(doc) + "/" + doc.Metadata.Name
	if first, dup := p.seen[name]; dup && doc.Metadata.Name != "" {
		d.fail("metadata.name", fmt.Sprintf("%s is already defined at line %d", name, first.line), "give each its own name, or remove one")
		return
	}
	p.seen[name] = d.where.of("metadata.name")
}

// withoutEchoes drops what validation (the errors from n on) says about fields that could not be
// read: decoding has said that already.
func (d *decoder) withoutEchoes(n int) Errors {
	kept := d.errs[:n:n]
	for _, e := range d.errs[n:] {
		if !d.missed(e.Field) {
			kept = append(kept, e)
		}
	}
	return kept
}

func (d *decoder) missed(field string) bool {
	for _, u := range d.unread {
		if rest, below := strings.CutPrefix(field, u); below && (u == "" || rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}
