package crd

import (
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Dir is where the definition is, from a package of this module.
const Dir = "../../../charts/weir-crds/templates"

// File is the definition.
const File = Dir + "/weirproxy.dev_quotapolicies.yaml"

// Schema validates objects as kube-apiserver does, for one version of one definition. It is for one
// goroutine at a time.
type Schema struct {
	structural *schema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
}

// LoadSchema reads a definition of one version and checks it as kube-apiserver does at its creation, the
// estimated cost of its rules included.
func LoadSchema(ctx context.Context, file string) (*Schema, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("make crds writes it: %w", err)
	}
	external := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, external); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	external.Status.StoredVersions = []string{external.Spec.Versions[0].Name} // as creation sets it
	crd := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(external, crd, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if errs := crdvalidation.ValidateCustomResourceDefinition(ctx, crd); len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", file, errs.ToAggregate())
	}
	version := crd.Spec.Versions[0].Schema
	if version == nil { // one version's schema is kept at the top
		version = crd.Spec.Validation
	}
	return newSchema(version.OpenAPIV3Schema)
}

func newSchema(props *apiextensions.JSONSchemaProps) (*Schema, error) {
	structural, err := schema.NewStructural(props)
	if err != nil {
		return nil, fmt.Errorf("structural schema: %w", err)
	}
	values, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, fmt.Errorf("value schema: %w", err)
	}
	return &Schema{structural, values, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// Default prunes and fills an object in place, as kube-apiserver does before it validates, and returns
// the paths of the unknown fields that it pruned: with strict field validation, errors.
func (s *Schema) Default(obj map[string]any) []string {
	unknown := pruning.PruneWithOptions(obj, s.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, s.structural)
	defaulting.Default(obj, s.structural)
	return unknown
}

// Validate returns what kube-apiserver says against an object at its creation, defaults filled in. Rules
// are not run on an object of wrong shape.
func (s *Schema) Validate(ctx context.Context, obj map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, obj, s.values)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, obj)...)
	for _, e := range errs {
		switch e.Type {
		case field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return errs
		}
	}
	broken, _ := s.rules.Validate(ctx, nil, s.structural, obj, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// Refusal is all that kube-apiserver has against an object that it has not seen yet, "" for nothing.
// obj is pruned and defaulted.
func (s *Schema) Refusal(ctx context.Context, obj map[string]any) string {
	var lines []string
	for _, path := range s.Default(obj) {
		lines = append(lines, fmt.Sprintf("unknown field %q", path))
	}
	for _, e := range s.Validate(ctx, obj) {
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}
