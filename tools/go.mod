// The programs that tests, lint and generation run. A module of its own, so
// that nothing here can move a version of what weir itself links.
module github.com/weirproxy/weir/tools

go 1.26.0

tool google.golang.org/protobuf/cmd/protoc-gen-go

require (
	github.com/bufbuild/protocompile v0.14.1
	google.golang.org/protobuf v1.36.12
)

require golang.org/x/sync v0.8.0 // indirect
