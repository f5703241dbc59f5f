package configfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/pflag"
)

// Flags are the flags of a configuration struct. What the command line gave is kept aside until Apply,
// so that it holds over the file although it was read before.
type Flags struct{ values []*flagValue }

// Bind adds a flag for each field of the struct that v points to, with its present value as the
// default and usage(field) as help.
func Bind(fs *pflag.FlagSet, v any, usage func(Field) string) *Flags {
	f := &Flags{}
	for _, field := range Fields(v) {
		fv := &flagValue{field: field, text: field.Text()}
		f.values = append(f.values, fv)
		flag := fs.VarPF(fv, field.Flag, "", usage(field))
		if field.Value.Kind() == reflect.Bool {
			flag.NoOptDefVal = "true"
		}
	}
	return f
}

// IsSetting reports whether a flag is one that Bind added.
func IsSetting(f *pflag.Flag) bool {
	_, ok := f.Value.(*flagValue)
	return ok
}

// Apply sets in the struct what the command line gave.
func (f *Flags) Apply() {
	for _, v := range f.values {
		if v.given.IsValid() {
			v.field.Value.Set(v.given)
		}
	}
}

// flagValue is a pflag.Value.
type flagValue struct {
	field Field
	text  string
	given reflect.Value // invalid: not given
}

func (v *flagValue) String() string { return v.text }
func (v *flagValue) Type() string   { return v.field.TypeName() }

// Set reads a value; lists and maps grow by repetition and by commas.
func (v *flagValue) Set(text string) error {
	t := v.field.Value.Type()
	var err error
	switch v.field.TypeName() {
	case "list":
		if !v.given.IsValid() {
			v.given = reflect.MakeSlice(t, 0, 1)
		}
		for _, item := range strings.Split(text, ",") {
			v.given = reflect.Append(v.given, reflect.ValueOf(item))
		}
	case "map":
		err = v.setMap(t, text)
	default:
		var parsed reflect.Value
		if parsed, err = parse(t, text); err == nil {
			v.given = parsed
		}
	}
	v.text = text
	return err
}

func (v *flagValue) setMap(t reflect.Type, text string) error {
	if !v.given.IsValid() {
		v.given = reflect.MakeMap(t)
	}
	for _, pair := range strings.Split(text, ",") {
		k, value, ok := strings.Cut(pair, "=")
		if !ok || k == "" {
			return fmt.Errorf("%q: %w", pair, errPair)
		}
		v.given.SetMapIndex(reflect.ValueOf(k), reflect.ValueOf(value))
	}
	return nil
}

var errPair = errors.New("write key=value")
