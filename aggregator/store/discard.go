package store

// Discard encodes a flush as Redis would be sent it, and drops it: what a benchmark without a server
// measures.
func Discard(f *Flush) error {
	var c chunk
	c.begin(f, true, true)
	for i := range f.Counters {
		c.counter(f, &f.Counters[i])
	}
	_, _ = c.keys.strings(), c.args.strings()
	return nil
}
