// Package configfile reads the programs' configuration: a strict YAML file over the defaults that a
// struct holds already, and flags over both. The structs of api/config are the one source of keys,
// flags and types; their fields' kinds are strings, bools, numbers, durations, lists and maps of
// strings, and structs of these.
package configfile

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Field is one setting: a leaf of a configuration struct.
type Field struct {
	// Path as in the file, kafka.tls.caFile; Flag as on the command line, without its dashes.
	Path, Flag string
	// Owner and Name are the Go type and field that hold it, to find its documentation by.
	Owner, Name string
	// Value is the field itself; it can be set.
	Value reflect.Value
}

// Fields are all settings of the struct that v points to, in the struct's order. It panics where v is
// no such pointer or holds a kind that a setting cannot have: a programmer's mistake.
func Fields(v any) []Field {
	return appendFields(nil, reflect.ValueOf(v).Elem(), "")
}

func appendFields(out []Field, v reflect.Value, prefix string) []Field {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		path := prefix + key(f)
		if f.Type.Kind() == reflect.Struct {
			out = appendFields(out, v.Field(i), path+".")
			continue
		}
		if typeName(f.Type) == "" {
			panic(fmt.Sprintf("configfile: %s.%s: no setting can be a %s", t.Name(), f.Name, f.Type))
		}
		out = append(out, Field{path, flagName(f, path), t.Name(), f.Name, v.Field(i)})
	}
	return out
}

func key(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func flagName(f reflect.StructField, path string) string {
	if name := f.Tag.Get("flag"); name != "" {
		return name
	}
	return kebab(path)
}

// kebab turns kafka.tls.caFile into kafka-tls-ca-file and clientID into client-id.
func kebab(path string) string {
	var b strings.Builder
	runes := []rune(path)
	for i, r := range runes {
		switch {
		case r == '.':
			b.WriteByte('-')
		case unicode.IsUpper(r):
			if i > 0 && unicode.IsLower(runes[i-1]) {
				b.WriteByte('-')
			}
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// TypeName says what a value of the field looks like, for a person.
func (f Field) TypeName() string { return typeName(f.Value.Type()) }

func typeName(t reflect.Type) string {
	if t == reflect.TypeFor[time.Duration]() {
		return "duration"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return "list"
		}
	case reflect.Map:
		if t.Elem().Kind() == reflect.String && t.Key().Kind() == reflect.String {
			return "map"
		}
	}
	return ""
}

// Text is the field's value as a flag would give it.
func (f Field) Text() string {
	switch v := f.Value.Interface().(type) {
	case []string:
		return strings.Join(v, ",")
	case map[string]string:
		pairs := make([]string, 0, len(v))
		for k, val := range v {
			pairs = append(pairs, k+"="+val)
		}
		sort.Strings(pairs)
		return strings.Join(pairs, ",")
	default:
		return fmt.Sprint(v)
	}
}

// parse reads one scalar's text into a new value of type t.
func parse(t reflect.Type, text string) (reflect.Value, error) {
	v := reflect.New(t).Elem()
	switch typeName(t) {
	case "string":
		v.SetString(text)
	case "bool":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return v, fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(b)
	case "duration":
		d, err := time.ParseDuration(text)
		if err != nil {
			return v, fmt.Errorf("%q is no duration: write a number and a unit, such as 500ms, 5s or 1m", text)
		}
		v.SetInt(int64(d))
	case "integer":
		n, err := strconv.ParseInt(text, 10, t.Bits())
		if err != nil {
			return v, fmt.Errorf("%q is no whole number of %d bits", text, t.Bits())
		}
		v.SetInt(n)
	case "number":
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return v, fmt.Errorf("%q is no number", text)
		}
		v.SetFloat(x)
	default:
		return v, fmt.Errorf("a %s cannot be given as one value", typeName(t))
	}
	return v, nil
}
