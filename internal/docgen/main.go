// Command docgen makes what is generated from api/config: the fields' documentation as Go code
// (api/config/docs.go, which flags show) and the reference page (docs/reference/configuration.md); and
// from the packages that own the metrics' names docs/reference/metrics.md.
// Run it with go generate ./api/config; its test fails where the files are out of date.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root, err := moduleRoot()
	if err == nil {
		err = write(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for name, data := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil { //nolint:gosec // documentation, for all to read
			return err
		}
	}
	return nil
}

// generate returns the generated files' contents by their path below the module's root.
func generate(root string) (map[string][]byte, error) {
	docs, err := parseDocs(filepath.Join(root, "api", "config"))
	if err != nil {
		return nil, err
	}
	code, err := docsCode(docs)
	if err != nil {
		return nil, err
	}
	page, err := reference(docs)
	if err != nil {
		return nil, err
	}
	metrics, err := metricsPage()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"api/config/docs.go": code, "docs/reference/configuration.md": page, "docs/reference/metrics.md": metrics,
	}, nil
}

// moduleRoot is the nearest directory upwards that holds a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod above the working directory: run this inside the module")
		}
		dir = up
	}
}
