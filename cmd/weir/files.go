package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/internal/policy"
)

// document is a policy and the file that holds it.
type document struct {
	file string
	spec *v1alpha1.QuotaPolicy
}

// readPolicies reads files, the policy files of directories, and standard input for "-". All errors of
// all files are returned together.
func readPolicies(cmd *cobra.Command, names []string) ([]document, error) {
	files, err := expand(names)
	errs := []error{err}
	var docs []document
	seen := map[string]string{}
	for _, file := range files {
		data, err := read(cmd, file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		parsed, err := policy.Parse(file, data)
		errs = append(errs, err)
		if err == nil && len(parsed) == 0 {
			errs = append(errs, fmt.Errorf("%s: holds no policy", file))
		}
		for _, d := range parsed {
			name := nameOf(d)
			if first, again := seen[name]; again && first != file {
				errs = append(errs, fmt.Errorf("%s: policy %s is in %s too; keep one", file, name, first))
			}
			seen[name] = file
			docs = append(docs, document{file, d})
		}
	}
	return docs, errors.Join(errs...)
}

func nameOf(d *v1alpha1.QuotaPolicy) string {
	namespace := d.Metadata.Namespace
	if namespace == "" {
		namespace = policy.DefaultNamespace
	}
	return namespace + "/" + d.Metadata.Name
}

// expand puts a directory's policy files in its place.
func expand(names []string) (files []string, err error) {
	var errs []error
	for _, name := range names {
		info, err := os.Stat(name)
		if name == "-" || err == nil && !info.IsDir() {
			files = append(files, name)
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found := policyFiles(name)
		if len(found) == 0 {
			errs = append(errs, fmt.Errorf("%s: no *.yaml, *.yml or *.json file in this directory", name))
		}
		files = append(files, found...)
	}
	return files, errors.Join(errs...)
}

func policyFiles(dir string) (found []string) {
	for _, pattern := range []string{"*.yaml", "*.yml", "*.json"} {
		m, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is a constant and well formed
		found = append(found, m...)
	}
	sort.Strings(found)
	return found
}

func read(cmd *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(cmd.InOrStdin(), policy.MaxDocument+1))
	}
	return os.ReadFile(file)
}
