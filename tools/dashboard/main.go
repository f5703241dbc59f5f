// Command dashboard prints the Grafana dashboard of weir as JSON: make dashboards writes it to
// charts/weir/files/dashboards. Panels are written in the types of Grafana's own schema, so what is no panel
// does not compile; what their queries ask for is held against the programs' metrics by test/obs.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	b, err := render()
	if err == nil {
		_, err = os.Stdout.Write(b)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

// render is the dashboard's JSON, indented, the same each time.
func render() ([]byte, error) {
	d, err := weir().Build()
	if err != nil {
		return nil, fmt.Errorf("build the dashboard: %w", err)
	}
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the dashboard: %w", err)
	}
	return append(b, '\n'), nil
}
