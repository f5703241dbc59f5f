// Package wire reads checks from the bytes that Envoy sends and writes answers as the bytes that it
// reads, without the messages in between.
//
// Scan fills a match.Request from a CheckRequest's bytes. It refuses what the generated decoder refuses,
// without exception (wire types, field numbers, nesting, UTF-8 in every string of every message, used or
// not), and what it fills is what the decoded message says; a fuzz test holds both. What no policy asks
// for is checked and passed over.
//
// An Encoder writes CheckResponses. All that an answer of a rate always says is encoded when policies are
// installed; numbers and a browser's origin are written between.
//
// Neither allocates in steady state, whatever the number of headers.
package wire
