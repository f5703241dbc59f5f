package unary

// Fixed bounds of one connection. Those that a user may want to move are in Options.
const (
	readBuffer   = 32 << 10 // bytes read at once; a frame's payload fits
	writeBuffer  = 64 << 10 // bytes gathered before a write that is not yet due
	keptBuffer   = 64 << 10 // capacity that a buffer keeps for the next call
	keptStreams  = 64       // streams kept for the next calls, with their bodies' buffers
	maxFrame     = 16 << 10 // payload of a frame, either way: what RFC 9113 has for all
	maxSettings  = 64       // in one frame: each may move the windows of all streams
	maxBlock     = 512      // bytes of a header block that is remembered
	maxFragments = 64       // CONTINUATION frames of one header block
	maxReason    = 1 << 10  // bytes of a status message

	// Frames that are no call, between two calls or two arms of the idle timeout: resets, pings, settings,
	// priorities, empty data, window updates that let nothing out, streams refused.
	maxControl = 10_000

	// bodies and replies that a connection may hold, in messages of the largest size
	maxBodies  = 4
	maxReplies = 4

	// The connection's receive window. Bodies are bounded apart, so it is given back on receipt.
	connectionWindow = 16 << 20
	initialWindow    = 1<<16 - 1 // RFC 9113, 6.9.2
	maxWindow        = 1<<31 - 1
)
