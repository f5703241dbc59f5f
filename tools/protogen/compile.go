package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// generated is one file that the plugin made; name is relative to the root.
type generated struct{ name, text string }

// compile parses and links the named files, comments included, and returns
// what a plugin is asked: all files in dependency order, the named ones to be
// generated. Errors carry file, line and column.
func compile(ctx context.Context, root, parameter string, names []string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			ImportPaths: []string{root},
		}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: names,
		Parameter:      &parameter,
	}
	seen := map[string]bool{}
	for _, f := range files {
		request.ProtoFile = appendWithImports(request.ProtoFile, f, seen)
	}
	return request, nil
}

// appendWithImports appends f after everything it imports, each file once.
func appendWithImports(to []*descriptorpb.FileDescriptorProto, f protoreflect.FileDescriptor, seen map[string]bool) []*descriptorpb.FileDescriptorProto {
	if seen[f.Path()] {
		return to
	}
	seen[f.Path()] = true
	imports := f.Imports()
	for i := range imports.Len() {
		to = appendWithImports(to, imports.Get(i).FileDescriptor, seen)
	}
	return append(to, protodesc.ToFileDescriptorProto(f))
}

// runPlugin speaks protoc's plugin protocol with the program at path: one
// request on its standard input, one response on its standard output.
func runPlugin(ctx context.Context, path string, request *pluginpb.CodeGeneratorRequest) ([]generated, error) {
	input, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(output, &response); err != nil {
		return nil, fmt.Errorf("answer of %s: %w", path, err)
	}
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	files := make([]generated, 0, len(response.GetFile()))
	for _, f := range response.GetFile() {
		files = append(files, generated{name: f.GetName(), text: f.GetContent()})
	}
	return files, nil
}
