package wire

import (
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// An update of Envoy's messages that adds a string or a message is to be noticed here: Scan would not check
// what is in it.
func TestTheSchemaIsTheGeneratedCodes(t *testing.T) {
	seen := map[message]bool{}
	sameFields(t, checkRequest, (&authv3.CheckRequest{}).ProtoReflect().Descriptor(), seen)
	if len(seen) != int(messages) {
		t.Errorf("%d messages are reached from a CheckRequest, of %d", len(seen), messages)
	}
}

func sameFields(t *testing.T, m message, want protoreflect.MessageDescriptor, seen map[message]bool) {
	if seen[m] {
		return
	}
	seen[m] = true
	known := 0
	for i := range want.Fields().Len() {
		f := want.Fields().Get(i)
		if f.Number() > maxField {
			t.Errorf("%s is beyond the table", f.FullName())
			continue
		}
		got := schema[m][f.Number()]
		if got.kind != kindOf(t, f) {
			t.Errorf("%s is of kind %d, want %d", f.FullName(), got.kind, kindOf(t, f))
			continue
		}
		if got != (field{}) {
			known++
		}
		if got.kind == nested || got.kind == mapped {
			sameFields(t, got.into, f.Message(), seen)
		}
	}
	for _, f := range schema[m] {
		if f != (field{}) {
			known--
		}
	}
	if known != 0 {
		t.Errorf("%s: the table has fields that it has not", want.FullName())
	}
}

func kindOf(t *testing.T, f protoreflect.FieldDescriptor) kind {
	t.Helper()
	switch f.Kind() {
	case protoreflect.MessageKind:
		if f.IsMap() {
			return mapped
		}
		return nested
	case protoreflect.StringKind:
		if f.Syntax() == protoreflect.Proto3 {
			return text
		}
	case protoreflect.GroupKind:
		t.Errorf("%s is a group", f.FullName())
	case protoreflect.BytesKind:
	default:
		if f.IsList() {
			t.Errorf("%s is a list of numbers, which may be packed", f.FullName())
		}
	}
	return plain
}
