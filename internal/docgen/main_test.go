package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date (%v): run go generate ./api/config", name, err)
		}
	}
}

func TestAFieldWithoutACommentIsRefused(t *testing.T) {
	if _, err := reference(map[string]string{}); err == nil {
		t.Error("no error for settings without documentation")
	}
}
