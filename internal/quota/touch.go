package quota

const lineWords = 8 // a 64-byte line's

// Touch asks for all of the cell's lines, so that a Decide of several cells does not wait for one after the other. What it
// returns means nothing: it is there to be kept, or the compiler would leave the reads out.
func (c *Cell) Touch() (kept uint64) {
	for i := 0; i < CellWords; i += lineWords {
		kept ^= c.w[i].Load()
	}
	return kept
}
