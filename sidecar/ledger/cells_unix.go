//go:build unix

package ledger

import (
	"syscall"
	"unsafe"

	"github.com/weirproxy/weir/internal/quota"
)

// NewCells returns n cells outside of Go's heap: they hold no pointers and are never given back, and within the heap
// each would let the collector wait for as much garbage again. They stay until the process ends, and cost
// memory only where they were used.
func NewCells(n int) []quota.Cell {
	b, err := syscall.Mmap(-1, 0, n*int(unsafe.Sizeof(quota.Cell{})), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil { // as where the number of mappings is bounded
		return make([]quota.Cell, n)
	}
	return unsafe.Slice((*quota.Cell)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
