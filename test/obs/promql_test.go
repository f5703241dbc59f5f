package obs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// check parses an expression and returns the labels that its result may have. Each metric, label and bounded value that it
// names has to be in the catalog.
func (c catalog) check(expr string) (set, error) {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	return c.result(e)
}

func (c catalog) result(e parser.Expr) (set, error) {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return c.selector(e)
	case *parser.AggregateExpr:
		return c.aggregate(e)
	case *parser.BinaryExpr:
		return c.binary(e)
	case *parser.Call:
		return c.call(e)
	default: // wraps another expression, or is a number
		all := set{}
		for _, child := range parser.Children(e) {
			got, err := c.result(child.(parser.Expr))
			if err != nil {
				return nil, err
			}
			maps.Copy(all, got)
		}
		return all, nil
	}
}

func (c catalog) selector(e *parser.VectorSelector) (set, error) {
	has, err := c.labelsOf(e.Name)
	if err != nil {
		return nil, err
	}
	for _, m := range e.LabelMatchers {
		if m.Name == "__name__" {
			continue
		}
		if !has[m.Name] {
			return nil, fmt.Errorf("%s has no label %s", e.Name, m.Name)
		}
		if err := c.value(e.Name, m); err != nil {
			return nil, err
		}
	}
	return has, nil
}

// value: a matcher that names values names such as the program has; one that is misspelt would never match.
func (c catalog) value(metric string, m *labels.Matcher) error {
	bounded := c.values[metric+"/"+m.Name]
	if bounded == nil {
		bounded = c.values[strings.TrimSuffix(metric, "_bucket")+"/"+m.Name]
	}
	if bounded == nil {
		return nil
	}
	for word := range strings.SplitSeq(m.Value, "|") {
		if !slices.Contains(bounded, word) {
			return fmt.Errorf("%s never has %s=%q, but %v", metric, m.Name, word, bounded)
		}
	}
	return nil
}

func (c catalog) aggregate(e *parser.AggregateExpr) (set, error) {
	in, err := c.result(e.Expr)
	if err != nil {
		return nil, err
	}
	for _, g := range e.Grouping {
		if !in[g] {
			return nil, fmt.Errorf("%s: nothing in it has the label %s", e, g)
		}
	}
	if e.Without {
		return nil, errors.New("without keeps labels that nobody named: say by")
	}
	out := newSet(e.Grouping)
	if name, is := e.Param.(*parser.StringLiteral); is { // count_values
		out[name.Val] = true
	}
	return out, nil
}

// binary: what matches on labels has them on both sides. The result is the left side's; with or, either's.
func (c catalog) binary(e *parser.BinaryExpr) (set, error) {
	left, err := c.result(e.LHS)
	if err != nil {
		return nil, err
	}
	right, err := c.result(e.RHS)
	if err != nil {
		return nil, err
	}
	if e.VectorMatching == nil {
		if len(left) == 0 {
			return right, nil
		}
		return left, nil
	}
	for _, l := range e.VectorMatching.MatchingLabels {
		if !left[l] || !right[l] {
			return nil, fmt.Errorf("%s: not both sides have the label %s", e, l)
		}
	}
	switch {
	case e.Op == parser.LOR:
		maps.Copy(left, right)
	case !maps.Equal(left, right) && !e.VectorMatching.On:
		return nil, fmt.Errorf("%s: the sides have other labels, %v and %v, and would never match", e, left, right)
	}
	return left, nil
}

func (c catalog) call(e *parser.Call) (set, error) {
	out := set{}
	for _, a := range e.Args {
		got, err := c.result(a)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, got)
	}
	switch e.Func.Name {
	case "absent":
		return set{}, nil
	case "histogram_quantile":
		if !out["le"] {
			return nil, fmt.Errorf("%s: its buckets are without le", e)
		}
		delete(out, "le")
	}
	return out, nil
}

// What the check is there for: mistakes that PromQL itself takes for an empty result.
func TestTheCheckFindsWhatWouldNeverMatch(t *testing.T) {
	c := known(t)
	for expr, says := range map[string]string{
		`sum(rate(weir_sidecar_check_total[5m]))`:                                                             "no program has",
		`weir_sidecar_checks_total{result="failed"}`:                                                          "has no label result",
		`weir_sidecar_checks_total{outcome=~"failed|mailformed"}`:                                             "mailformed",
		`sum by (policy) (rate(weir_sidecar_checks_total[5m]))`:                                               "the label policy",
		`sum by (partition) (weir_sidecar_degraded_reason)`:                                                   "the label partition",
		`sum by (pod) (weir_aggregator_live) unless on (partition) weir_aggregator_live`:                      "not both sides",
		`sum by (namespace) (weir_sidecar_ready) / count(weir_sidecar_ready)`:                                 "never match",
		`histogram_quantile(0.9, sum by (since) (rate(weir_sidecar_propagation_seconds_bucket[5m])))`:         "without le",
		`sum by (le) (rate(weir_sidecar_propagation_seconds_bucket{since="reports"}[5m]))`:                    "reports",
		`sum(rate(weir_sidecar_checks_total[5m])`:                                                             "unclosed",
		`count(controller_runtime_reconcile_errors_total{job="weir-controller", reconciler="quotapolicies"})`: "has no label",
	} {
		if _, err := c.check(expr); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", expr, err, says)
		}
	}
}
