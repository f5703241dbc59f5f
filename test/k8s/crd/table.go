package crd

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"

	utiljson "k8s.io/apimachinery/pkg/util/json" // whole numbers become int64, as in kube-apiserver
	"sigs.k8s.io/yaml"
)

//go:embed testdata/table.yaml
var tableFile []byte

// Row is one document of the table and what becomes of it.
type Row struct {
	// Name says what the row is about; unique.
	Name string `json:"name"`
	// Spec replaces fields of Base's spec; a null removes one.
	Spec map[string]any `json:"spec"`
	// Refused is part of what kube-apiserver says; Go validation refuses the document too. "": accepted.
	Refused string `json:"refused,omitempty"`
	// Invalid is part of what Go validation says of a document that kube-apiserver accepts: the
	// controller then sets Accepted to False, with reason Invalid. "": Go accepts it too.
	Invalid string `json:"invalid,omitempty"`
}

// Table is the shared table.
type Table struct {
	// Base is the spec that rows change.
	Base map[string]any `json:"base"`
	Rows []Row          `json:"rows"`
}

// LoadTable reads the table; unknown fields are errors.
func LoadTable() (*Table, error) {
	t := &Table{}
	if err := yaml.UnmarshalStrict(tableFile, t); err != nil {
		return nil, fmt.Errorf("testdata/table.yaml: %w", err)
	}
	seen := make(map[string]bool)
	for _, r := range t.Rows {
		if seen[r.Name] || r.Refused != "" && r.Invalid != "" {
			return nil, fmt.Errorf("testdata/table.yaml: row %q is named twice, or both refused and invalid", r.Name)
		}
		seen[r.Name] = true
	}
	return t, nil
}

// Document returns a row's whole document, a fresh copy named name.
func (t *Table) Document(r *Row, name string) (map[string]any, error) {
	spec := maps.Clone(t.Base)
	for k, v := range r.Spec {
		spec[k] = v
		if v == nil {
			delete(spec, k)
		}
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "weirproxy.dev/v1alpha1", "kind": "QuotaPolicy",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": spec,
	})
	if err != nil {
		return nil, fmt.Errorf("row %q: %w", r.Name, err)
	}
	var doc map[string]any
	if err := utiljson.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("row %q: %w", r.Name, err)
	}
	return doc, nil
}
