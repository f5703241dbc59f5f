package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/pluginpb"
)

// pluginEnv makes the test binary itself the plugin.
const pluginEnv = "PROTOGEN_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(pluginEnv) != "" {
		plugin()
		return
	}
	os.Exit(m.Run())
}

// plugin answers with one file that names all it was given, and shows that
// comments come along; it refuses a file with a message called Bad.
func plugin() {
	input, _ := io.ReadAll(os.Stdin)
	var request pluginpb.CodeGeneratorRequest
	if err := proto.Unmarshal(input, &request); err != nil {
		panic(err)
	}
	var response pluginpb.CodeGeneratorResponse
	text := request.GetParameter() + "\n"
	for _, f := range request.GetProtoFile() {
		text += f.GetName() + "\n"
		for _, l := range f.GetSourceCodeInfo().GetLocation() {
			text += l.GetLeadingComments()
		}
		for _, m := range f.GetMessageType() {
			if m.GetName() == "Bad" {
				response.Error = proto.String("bad message")
			}
		}
	}
	response.File = []*pluginpb.CodeGeneratorResponse_File{{
		Name:    proto.String("a/made.txt"),
		Content: &text,
	}}
	output, _ := proto.Marshal(&response)
	_, _ = os.Stdout.Write(output)
}

// source writes the files of a root directory and returns it.
func source(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func generate(t *testing.T, root string, args ...string) error {
	t.Helper()
	t.Setenv(pluginEnv, "1")
	return run(t.Context(), append([]string{"-root", root, "-plugin", os.Args[0]}, args...))
}

func TestGenerateWritesAndCheckHoldsItToThat(t *testing.T) {
	root := source(t, map[string]string{
		"a/one.proto": `syntax = "proto3"; import "a/two.proto";
// A comment.
message One { Two two = 1; }`,
		"a/two.proto": `syntax = "proto3"; import "google/protobuf/duration.proto";
message Two { google.protobuf.Duration d = 1; }`,
	})
	if err := generate(t, root, "-check", "a/one.proto"); err == nil || !strings.Contains(err.Error(), "a/made.txt is out of date") {
		t.Errorf("check before the first generation: %v", err)
	}
	if err := generate(t, root, "-opt", "x=y", "a/one.proto"); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(filepath.Join(root, "a/made.txt"))
	if err != nil {
		t.Fatal(err)
	}
	// Imports come before what imports them.
	order := []string{"x=y\n", "google/protobuf/duration.proto\n", "a/two.proto\n", "a/one.proto\n", " A comment."}
	at := 0
	for _, want := range order {
		i := strings.Index(string(made)[at:], want)
		if i < 0 {
			t.Fatalf("%q does not follow in:\n%s", want, made)
		}
		at += i
	}
	if err := generate(t, root, "-check", "-opt", "x=y", "a/one.proto"); err != nil {
		t.Errorf("check after the generation: %v", err)
	}
}

func TestErrorsSayWhere(t *testing.T) {
	root := source(t, map[string]string{
		"broken.proto": "syntax = \"proto3\";\nmessage One { Missing m = 1; }",
		"bad.proto":    `syntax = "proto3"; message Bad {}`,
	})
	for name, want := range map[string]string{
		"broken.proto": "broken.proto:2:15",
		"bad.proto":    "bad message",
		"absent.proto": "absent.proto",
	} {
		if err := generate(t, root, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want one with %q", name, err, want)
		}
	}
	if err := generate(t, root); err == nil {
		t.Error("no file named, and no error")
	}
}
