// Package unary is a small server of unary gRPC calls over clear-text HTTP/2, for peers of the same pod:
// a unix socket or loopback, no TLS, no streaming, no compression, no interceptors.
//
// One goroutine a connection reads frames, runs the handler itself and gathers what it answers; all of it
// goes out in one write before the next read. So a call costs no hand-over between goroutines, and calls
// that arrive together share their system calls. The price: a handler must not wait for anything.
//
// Frames are read and written by http2.Framer, header blocks by hpack. HEADERS and CONTINUATION without
// padding or priority, whose payload is the block and nothing else, are taken from the read buffer, since
// the Framer allocates for each. A header block that comes again and leaves hpack's table as it is is not
// decoded again (headers.go). A call in steady state allocates nothing.
//
// What a peer can make the server hold is bounded: connections, streams, header lists, bodies, replies
// that wait for the peer's window, output. See Options, and limits.go for what is fixed.
package unary
