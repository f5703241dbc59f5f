package inject

import (
	"bytes"
	"errors"
	"fmt"
)

// Options are what a stream does not say.
type Options struct {
	// Namespace is where documents go that name none. Empty: not known.
	Namespace string
	// OptIn leaves alone what no label asks for, as the webhook does. Otherwise a stream's pods are
	// injected unless a label of theirs, or of their namespace in the stream, says disabled.
	OptIn bool
}

// Stream injects the pods of a stream of YAML or JSON documents. What is not changed is given back byte
// for byte; a changed document loses its comments and the order of its keys. The error is all that is
// wrong in the stream, and then nothing is to be used.
func (e *Engine) Stream(in []byte, o Options) ([]byte, Report, error) {
	return rewrite(in, o, e.Inject)
}

// UninjectStream takes the sidecar out of the pods of a stream, in the manner of Stream.
func UninjectStream(in []byte) ([]byte, Report, error) {
	return rewrite(in, Options{}, func(template map[string]any, _ Subject) (Outcome, error) { return Uninject(template) })
}

type change func(template map[string]any, s Subject) (Outcome, error)

// stream is one stream under way.
type stream struct {
	options    Options
	change     change
	services   []Service
	namespaces map[string]string // the labels of those in the stream
	report     Report
	errs       []error
}

func rewrite(in []byte, o Options, change change) ([]byte, Report, error) {
	if bytes.IndexByte(in, 0) >= 0 { // UTF-16, as some shells write it, has them too
		return nil, nil, errors.New("this is not UTF-8 text (UTF-16, perhaps): save it as UTF-8 and try again")
	}
	if len(in) > MaxStream {
		return nil, nil, fmt.Errorf("more than %d MiB of input; give it in parts", MaxStream>>20)
	}
	chunks := split(in)
	if len(chunks) > maxDocuments {
		return nil, nil, fmt.Errorf("%d documents, at most %d; give them in parts", len(chunks), maxDocuments)
	}
	s := &stream{options: o, change: change, namespaces: map[string]string{}}
	docs := s.look(chunks)
	number := 0
	for i, c := range chunks {
		if c.blank() {
			continue
		}
		number++
		if docs[i] != nil {
			chunks[i] = s.document(c, docs[i], number)
		}
	}
	if err := errors.Join(s.errs...); err != nil {
		return nil, nil, err
	}
	return join(chunks), s.report, nil
}

// look decodes the documents and notes the Services and namespaces among them.
func (s *stream) look(chunks []chunk) []object {
	docs := make([]object, len(chunks))
	number := 0
	for i, c := range chunks {
		if c.blank() {
			continue
		}
		number++
		o, ok, err := c.decode(false)
		switch {
		case err != nil:
			s.errs = append(s.errs, fmt.Errorf("document %d: %w; mend it, or leave it out", number, err))
		case !ok:
			s.report = append(s.report, Entry{Document: number, Outcome: Outcome{Action: Passed, Reason: "no Kubernetes object"}})
		default:
			docs[i] = o
			s.note(o, 0)
		}
	}
	return docs
}

// maxNesting bounds lists within lists.
const maxNesting = 4

func (s *stream) note(o object, depth int) {
	if isList(o) && depth < maxNesting {
		for _, item := range listAt(o, "items") {
			child, _ := item.(object)
			s.note(child, depth+1)
		}
		return
	}
	if service, ok := serviceIn(o, s.namespaceOf(o)); ok {
		s.services = append(s.services, service)
	}
	if textAt(o, "apiVersion") == "v1" && textAt(o, "kind") == "Namespace" {
		meta := at(o, "metadata")
		s.namespaces[textAt(meta, "name")] = textAt(at(meta, "labels"), Label)
	}
}

func isList(o object) bool { return textAt(o, "apiVersion") == "v1" && textAt(o, "kind") == "List" }

func (s *stream) namespaceOf(o object) string {
	return orElse(textAt(at(o, "metadata"), "namespace"), s.options.Namespace)
}

// document is the chunk with what became of its document.
func (s *stream) document(c chunk, o object, number int) chunk {
	entry := Entry{Document: number}
	if !s.object(o, entry, 0) {
		return c
	}
	if _, _, err := c.decode(true); err != nil { // a repeated key: which one is meant is not ours to say
		s.fail(entry, err)
		return c
	}
	changed, err := c.with(o)
	if err != nil {
		s.fail(entry, err)
	}
	return changed
}

// object changes what pods o holds, and reports whether it did.
func (s *stream) object(o object, entry Entry, depth int) (changed bool) {
	if isList(o) && depth < maxNesting {
		for i, item := range listAt(o, "items") {
			child, ok := item.(object)
			entry.Item = append(entry.Item[:depth:depth], i+1)
			changed = ok && s.object(child, entry, depth+1) || changed
		}
		return changed
	}
	meta := at(o, "metadata")
	entry.Kind, entry.Name = textAt(o, "kind"), orElse(textAt(meta, "name"), textAt(meta, "generateName"))
	entry.Namespace = s.namespaceOf(o)
	path, ok := templatePath(textAt(o, "apiVersion"), entry.Kind)
	if !ok {
		entry.Outcome = Outcome{Action: Passed, Reason: "it makes no pods that weir knows of"}
		s.report = append(s.report, entry)
		return false
	}
	out, err := s.pods(o, path, entry)
	if err != nil {
		s.fail(entry, err)
		return false
	}
	entry.Outcome = out
	s.report = append(s.report, entry)
	return out.Action.Changed()
}

// pods changes the template at path.
func (s *stream) pods(o object, path []string, entry Entry) (Outcome, error) {
	template, err := templateOf(o, path)
	if err != nil {
		return Outcome{}, err
	}
	subject := Subject{Namespace: entry.Namespace, Services: s.services, NamespaceLabel: s.namespaces[entry.Namespace]}
	if subject.NamespaceLabel == "" && !s.options.OptIn {
		subject.NamespaceLabel = Enabled
	}
	if subject.OwnerKind, subject.OwnerName, err = ownerIn(o, entry.Kind); err != nil {
		return Outcome{}, err
	}
	return s.change(template, subject)
}

func (s *stream) fail(entry Entry, err error) {
	s.errs = append(s.errs, fmt.Errorf("%s: %w", entry.where(), err))
}
