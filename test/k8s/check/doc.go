// Package check has tests of `weir check` against a real kube-apiserver: the program itself, as a user who has the rights
// that docs/check.md lists and no other, on an installation that is broken and mended again.
package check
