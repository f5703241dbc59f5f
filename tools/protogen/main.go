// Command protogen compiles .proto files and runs protoc-gen-go on them.
//
// It stands in for protoc and buf: protocompile is a pure Go compiler that
// builds in seconds, where buf takes minutes on a fresh machine and protoc
// would be one more thing to install. The result is byte for byte what the
// plugin makes of protoc's descriptors, apart from the compiler's version in
// the header.
//
//	protogen -plugin .tools/bin/protoc-gen-go api/wire/v1/weir.proto
//
// Names are relative to -root, and so is what is generated beside them. The
// name is also what the file registers itself under at run time, so it must
// not change lightly. With -check nothing is written, and files that are not
// what they would be made are an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("protogen", flag.ContinueOnError)
	root := flags.String("root", ".", "directory that proto files are named from, and that results are written under")
	plugin := flags.String("plugin", "protoc-gen-go", "the protoc-gen-go to run")
	check := flags.Bool("check", false, "write nothing; fail if a file is out of date")
	opts := flags.String("opt", "paths=source_relative", "the plugin's parameter")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no proto file named")
	}
	request, err := compile(ctx, *root, *opts, flags.Args())
	if err != nil {
		return err
	}
	response, err := runPlugin(ctx, *plugin, request)
	if err != nil {
		return err
	}
	if *check {
		return upToDate(*root, response)
	}
	return write(*root, response)
}

// upToDate names the files under root that differ from what was generated.
func upToDate(root string, files []generated) error {
	var stale []error
	for _, f := range files {
		if !same(filepath.Join(root, filepath.FromSlash(f.name)), f.text) {
			stale = append(stale, fmt.Errorf("%s is out of date: run make generate", f.name))
		}
	}
	return errors.Join(stale...)
}

func same(path, text string) bool {
	old, err := os.ReadFile(path)
	return err == nil && string(old) == text
}

// write puts each generated file under root. A file whose text did not change
// is left alone, so that its time does not make anything build again.
func write(root string, files []generated) error {
	for _, f := range files {
		path := filepath.Join(root, filepath.FromSlash(f.name))
		if same(path, f.text) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
