// Package chart reads what charts/weir gives to Prometheus and Grafana, for tests.
package chart

import (
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// Alert is one rule of files/alerts.
type Alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

// AlertFiles are the files of alerts in files, the chart's folder of that name; an error if there are none.
func AlertFiles(files string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(files, "alerts", "*.yaml"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s has no alerts", files)
	}
	return paths, err
}

// Alerts are those of all files, in their order.
func Alerts(files string) ([]Alert, error) {
	paths, err := AlertFiles(files)
	if err != nil {
		return nil, err
	}
	var all []Alert
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var f struct {
			Groups []struct {
				Rules []Alert
			}
		}
		if err := yaml.Unmarshal(b, &f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, g := range f.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all, nil
}
