package quota

import "sync/atomic"

// The low bits of a cell's version say where its view is.
const (
	placeStep = 8 // of the version
	placeMask = placeStep - 1
	placeCell = 0 // in the cell; else in a spare, from 1
)

// spares are copies of views that are being written. The control goroutine writes one at a time, and those who make slots
// one each before any check can find them. The zero value is ready; safe for concurrent use.
type spares struct {
	taken  [placeMask]atomic.Uint32
	copies [placeMask]viewCopy
}

// take returns the place of a spare that nobody writes, for the caller to put back; placeCell: all are taken.
func (s *spares) take() uint64 {
	for i := range s.taken {
		if s.taken[i].Load() == 0 && s.taken[i].CompareAndSwap(0, 1) {
			return uint64(i) + 1
		}
	}
	return placeCell
}

func (s *spares) put(place uint64) {
	if place != placeCell {
		s.taken[place-1].Store(0)
	}
}

// at is the copy at a place from 1.
func (s *spares) at(place uint64) *viewCopy { return &s.copies[(place-1)%placeMask] }
