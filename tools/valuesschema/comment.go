package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// comment is what stands above a key.
type comment struct {
	description string
	schema      string // what follows @schema, "" for none
}

// commentOf reads the comment above a key: what is for people begins with two dashes and goes to its end.
func commentOf(key *yaml.Node) comment {
	var c comment
	var described bool
	for line := range strings.Lines(key.HeadComment) {
		text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		rest, begins := strings.CutPrefix(text, "-- ")
		hint, isHint := strings.CutPrefix(text, "@schema ")
		switch {
		case isHint:
			c.schema = hint
		case begins:
			c.description, described = rest, true
		case described:
			c.description += " " + text
		}
	}
	return c
}

// overlay is what the hint says, nil without one.
func (c comment) overlay() (schema, error) {
	if c.schema == "" {
		return nil, nil
	}
	if !strings.HasPrefix(c.schema, "{") {
		s, ok := named()[c.schema]
		if !ok {
			return nil, fmt.Errorf("@schema %s: it is none of %s", c.schema, strings.Join(names(), ", "))
		}
		return s, nil
	}
	var s schema
	if err := yaml.Unmarshal([]byte(c.schema), &s); err != nil {
		return nil, fmt.Errorf("@schema: %w", err)
	}
	return s, nil
}

// named are the types that values share.
func named() map[string]schema {
	text := schema{"type": "string"}
	quantities := func(keys ...string) schema {
		q := schema{"type": []string{"string", "number"}, "pattern": `^[0-9.]+(m|[kKMGTPE]i?)?$`}
		s := schema{"type": "object", "additionalProperties": q}
		if len(keys) > 0 {
			properties := schema{}
			for _, k := range keys {
				properties[k] = q
			}
			s = schema{"type": "object", "properties": properties, "additionalProperties": false}
		}
		return schema{"type": "object", "properties": schema{"requests": s, "limits": s}, "additionalProperties": false}
	}
	return map[string]schema{
		"strings":    {"type": "object", "additionalProperties": text},
		"words":      {"type": "array", "items": schema{"type": "string", "minLength": 1}},
		"object":     {"type": "object"},
		"objects":    {"type": "array", "items": schema{"type": "object"}},
		"references": {"type": "array", "items": schema{"type": "object", "properties": schema{"name": text}, "required": []string{"name"}, "additionalProperties": false}},
		"secretKey":  {"type": "string", "pattern": `^[-._a-zA-Z0-9]*$`},
		"digest":     {"type": "string", "pattern": `^(sha256:[0-9a-f]{64})?$`},
		"resources":  quantities(),
		"cpuMemory":  quantities("cpu", "memory"),
	}
}

func names() []string { return slices.Sorted(maps.Keys(named())) }
