package quota

// Rand is a small source of random numbers (splitmix64), 8 bytes, for one goroutine at a time: a
// check makes one on its stack, or takes one of a shard. The zero value is ready.
type Rand struct{ state uint64 }

// NewRand returns a source that depends on seed alone.
func NewRand(seed uint64) Rand { return Rand{state: seed} }

// Uint64 returns 64 random bits.
func (r *Rand) Uint64() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Float64 returns a number in [0, 1).
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) / (1 << 53) }
