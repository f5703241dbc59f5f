//go:build !race

package unary

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/net/http2"
)

// A call in steady state allocates nothing, however many headers come with it, and however the path is
// sent: as grpc-go does, from the table, or as Envoy does, in full each time.
func TestAllocations(t *testing.T) {
	for _, headers := range []int{0, 40} {
		for _, indexed := range []bool{true, false} {
			t.Run(fmt.Sprintf("headers=%d indexed=%v", headers, indexed), func(t *testing.T) {
				if n := allocations(t, headers, indexed); n > 0 {
					t.Fatalf("%v allocations a call", n)
				}
			})
		}
	}
}

func allocations(t *testing.T, headers int, indexed bool) float64 {
	s := new(script)
	c := newConn(New(methods(), Options{}), s)
	var sent bytes.Buffer
	r := newRaw(t, nil)
	r.framer = http2.NewFramer(&sent, nil)
	lines := []string{":method: POST", ":scheme: http", "content-type: application/grpc", "te: trailers"}
	if indexed {
		lines = append(lines, ":path: "+echo)
	}
	for i := range headers {
		lines = append(lines, fmt.Sprintf("x-%d: value", i))
	}
	id := uint32(1)
	ask := func() {
		sent.Reset()
		block := r.block(order(lines)...)
		if !indexed {
			block = append(append(append([]byte{}, block[:2]...), append([]byte{0x04, byte(len(echo))}, echo...)...), block[2:]...)
		}
		r.ok(r.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true}))
		r.data(id, true, message("hello"))
		id += 2
	}
	answer := func() {
		s.Reset(sent.Bytes())
		c.answerTwoFrames(t)
	}
	c.settled = true
	for range 200 {
		ask()
		answer()
	}
	const calls = 1000
	all := make([][]byte, calls+1)
	for i := range all {
		ask()
		all[i] = bytes.Clone(sent.Bytes())
	}
	i := 0
	before := s.written
	n := testing.AllocsPerRun(calls, func() {
		s.Reset(all[i])
		i++
		c.answerTwoFrames(t)
	})
	if got, least := s.written-before, calls*(3*9+len("hello")); got < least {
		t.Fatalf("%d bytes written: not all was answered", got)
	}
	return n
}

// order puts pseudo-headers first.
func order(lines []string) []string {
	var first, rest []string
	for _, line := range lines {
		if line[0] == ':' {
			first = append(first, line)
		} else {
			rest = append(rest, line)
		}
	}
	return append(first, rest...)
}
