package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"
)

// draft is the newest that every Helm in use understands.
const draft = "http://json-schema.org/draft-07/schema#"

type schema = map[string]any

// fromValues is the schema of a values.yaml.
func fromValues(text []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is no mapping")
	}
	out, err := ofMapping("", doc.Content[0])
	if err != nil {
		return nil, err
	}
	out["$schema"] = draft
	// Helm gives this to a chart that is part of another.
	out["properties"].(schema)["global"] = schema{"type": "object", "description": "Values of a chart that this one is part of; not used."}
	b, err := json.MarshalIndent(out, "", "  ")
	return append(b, '\n'), err
}

// ofMapping is the schema of a mapping whose keys are all known.
func ofMapping(path string, node *yaml.Node) (schema, error) {
	properties := schema{}
	var errs []error
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		s, err := ofValue(at, commentOf(key), value)
		if err != nil {
			errs = append(errs, fmt.Errorf("%d: %s: %w", key.Line, at, err))
			continue
		}
		properties[key.Value] = s
	}
	return schema{"type": "object", "properties": properties, "additionalProperties": false}, errors.Join(errs...)
}

func ofValue(path string, c comment, value *yaml.Node) (schema, error) {
	over, err := c.overlay()
	if err != nil {
		return nil, err
	}
	if value.Kind == yaml.MappingNode && over == nil && len(value.Content) > 0 {
		return ofMapping(path, value)
	}
	if c.description == "" {
		return nil, errors.New("it has no description: # -- What it is for.")
	}
	kind := typeOf(value)
	if over == nil && (kind == "array" || kind == "object" || kind == "null") {
		return nil, fmt.Errorf("say what it holds: # @schema %s", strings.Join(names(), ", "))
	}
	out := schema{"type": kind, "description": c.description}
	maps.Copy(out, over)
	if _, ok := out["enum"]; ok {
		delete(out, "type") // the words themselves say it
	}
	return out, nil
}

// typeOf is the JSON type of a default.
func typeOf(value *yaml.Node) string {
	switch {
	case value.Kind == yaml.MappingNode:
		return "object"
	case value.Kind == yaml.SequenceNode:
		return "array"
	}
	switch value.Tag {
	case "!!bool":
		return "boolean"
	case "!!int":
		return "integer"
	case "!!float":
		return "number"
	case "!!null":
		return "null"
	default:
		return "string"
	}
}
