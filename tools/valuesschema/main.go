// Command valuesschema makes a chart's values.schema.json from its values.yaml, so that each value is
// written once: its default is its type, and its description is the comment that helm-docs reads too.
//
//	valuesschema charts/weir
//
// Every value has a description ("# -- What it is for."), and every mapping refuses keys that it does not
// have. A line "# @schema WORD" or "# @schema {…}" above the description says what a default cannot: WORD is one of
// the package's named types, and {…} is JSON Schema that is laid over what the default says. With -check nothing is
// written, and a file that is out of date is an error.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "valuesschema:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("valuesschema", flag.ContinueOnError)
	check := flags.Bool("check", false, "write nothing; fail if the file is out of date")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("name one chart's directory")
	}
	return generate(flags.Arg(0), *check)
}

// generate makes the schema of the chart in dir.
func generate(dir string, check bool) error {
	values := filepath.Join(dir, "values.yaml")
	text, err := os.ReadFile(values)
	if err != nil {
		return err
	}
	schema, err := fromValues(text)
	if err != nil {
		return fmt.Errorf("%s: %w", values, err)
	}
	file := filepath.Join(dir, "values.schema.json")
	if !check {
		return os.WriteFile(file, schema, 0o644)
	}
	if old, err := os.ReadFile(file); err != nil || string(old) != string(schema) {
		return fmt.Errorf("%s is out of date: run make charts", file)
	}
	return nil
}
