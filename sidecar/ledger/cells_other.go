//go:build !unix

package ledger

import "github.com/weirproxy/weir/internal/quota"

func newCells(n int) []quota.Cell { return make([]quota.Cell, n) }
