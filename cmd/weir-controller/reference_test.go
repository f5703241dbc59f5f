package main

import (
	"flag"
	"testing"

	"github.com/weirproxy/weir/internal/cli/clidoc"
)

var update = flag.Bool("update", false, "write the reference page anew")

func TestTheCommandReferenceIsCurrent(t *testing.T) {
	if err := clidoc.Current("../../docs/reference/weir-controller.md", root(), *update); err != nil {
		t.Error(err)
	}
}
