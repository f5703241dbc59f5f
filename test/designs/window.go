package designs

import "time"

// window counts in buckets of time; content is the sum of the newest ones.
type window struct {
	bucket  time.Duration
	buckets []uint64 // a ring
	newest  int64    // its bucket's number
	content uint64
}

func newWindow(bucket time.Duration, n int) *window {
	return &window{bucket: bucket, buckets: make([]uint64, n)}
}

// advance drops what is older than the newest n buckets at now.
func (w *window) advance(now time.Duration) {
	for to := int64(now / w.bucket); w.newest < to; {
		w.newest++
		b := w.at(w.newest)
		w.content -= *b
		*b = 0
	}
}

// add counts n units of the time at, unless they have left the window.
func (w *window) add(at time.Duration, n uint64) {
	number := int64(at / w.bucket)
	if number > w.newest || number <= w.newest-int64(len(w.buckets)) {
		return
	}
	*w.at(number) += n
	w.content += n
}

func (w *window) at(number int64) *uint64 { return &w.buckets[number%int64(len(w.buckets))] }
