package inject

import (
	"fmt"
	"slices"
	"strings"
)

// Passed is the action for what is no pod: it went through as it was.
const Passed Action = "passed through"

// Entry is what became of one object of a stream. Document counts from 1 and leaves empty ones out; Item
// is the place in a List, from 1, and in a List within it.
type Entry struct {
	Document              int
	Item                  []int
	Kind, Namespace, Name string
	Outcome
}

// where names the object to a person.
func (e Entry) where() string {
	out := fmt.Sprintf("document %d", e.Document)
	for _, i := range e.Item {
		out += fmt.Sprintf(", item %d", i)
	}
	if e.Kind == "" {
		return out
	}
	name := e.Name
	if e.Namespace != "" && e.Kind != "Namespace" {
		name = e.Namespace + "/" + name
	}
	return strings.TrimRight(out+": "+e.Kind+" "+name, " ")
}

// Report is what became of a stream's objects, in its order.
type Report []Entry

// String is a line for each object and one, indented, for each note.
func (r Report) String() string {
	sorted := slices.Clone(r)
	slices.SortStableFunc(sorted, func(a, b Entry) int { return a.Document - b.Document })
	var b strings.Builder
	for _, e := range sorted {
		fmt.Fprintf(&b, "%s: %s: %s\n", e.where(), e.Action, e.Reason)
		for _, n := range e.Notes {
			fmt.Fprintf(&b, "  note: %s\n", n)
		}
	}
	return b.String()
}
