package crd

import "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

// rules returns the messages of all rules of a schema.
func rules(s *Schema) map[string]bool {
	out := make(map[string]bool)
	walk(s.structural, func(level *schema.Structural) {
		for _, r := range level.XValidations {
			out[r.Message] = true
		}
	})
	return out
}

func walk(s *schema.Structural, each func(*schema.Structural)) {
	if s == nil {
		return
	}
	each(s)
	walk(s.Items, each)
	for name := range s.Properties {
		p := s.Properties[name]
		walk(&p, each)
	}
}

// visit calls back with the messages of the rules that an object is held against.
func (s *Schema) visit(obj any, each func(message string)) { visit(s.structural, obj, each) }

func visit(s *schema.Structural, value any, each func(string)) {
	for _, r := range s.XValidations {
		each(r.Message)
	}
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			if p, known := s.Properties[name]; known {
				visit(&p, field, each)
			}
		}
	case []any:
		for _, item := range v {
			visit(s.Items, item, each)
		}
	}
}
