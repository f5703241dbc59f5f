//go:build !unix

package ledger

import "github.com/weirproxy/weir/internal/quota"

// NewCells returns n cells.
func NewCells(n int) []quota.Cell { return make([]quota.Cell, n) }
