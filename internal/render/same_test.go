package render

import (
	"slices"
	"testing"
)

// Targets that are alike but for one part of their names have objects of their own, and one that is named twice has one.
func TestEachTargetHasOnePolicy(t *testing.T) {
	text, err := EnvoyGateway(plainly("shop/HTTPRoute/orders", "shop/GRPCRoute/orders", "shop/HTTPRoute/orders"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range decoded(t, text) {
		if d["kind"] == "SecurityPolicy" {
			m, _ := d["metadata"].(map[string]any)
			name, _ := m["name"].(string)
			names = append(names, name)
		}
	}
	if !slices.Equal(names, []string{"weir-orders", "weir-orders-grpcroute"}) {
		t.Errorf("policies are %q", names)
	}
}
