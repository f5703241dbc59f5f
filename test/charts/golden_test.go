package charts

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sets are the sets of values in testdata, and whether the chart was installed before.
var sets = map[string]Cluster{
	"minimal":      Living(keyInUse),
	"production":   Living(keyInUse),
	"cert-manager": nil, // as a tool that renders without the cluster
	"everything":   Living(keyInUse),
	"watched":      Living(keyInUse),
	"tiny":         Living(keyInUse),
}

// keyInUse is an identity key that the cluster has already, so that what is rendered is the same each time.
const keyInUse = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// render is the set called name.
func render(t *testing.T, name string) Files {
	t.Helper()
	values, err := Values(name)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Render(values, sets[name])
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What each set renders to, notes included. A change of the chart shows here what it changes for whom.
func TestRendersAreGolden(t *testing.T) {
	for name := range sets {
		t.Run(name, func(t *testing.T) {
			got := render(t, name).String()
			file := filepath.Join("testdata", name, "out.yaml")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s is not what is rendered: go test -update, and look at the difference", file)
			}
		})
	}
}
