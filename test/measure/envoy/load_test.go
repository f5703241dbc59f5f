//go:build linux

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Each request is answered once, whatever the pieces that its answer comes in.
func TestClosedLoop(t *testing.T) {
	defer goleak.VerifyNone(t)
	asked := make(chan string, 1<<16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("x-key")
		body := strings.Repeat("b", 100)
		w.Header().Set("content-length", "100")
		if r.Header.Get("x-key") == "b" {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = w.Write([]byte(body[:50]))
		w.(http.Flusher).Flush()
		_, _ = w.Write([]byte(body[50:]))
	}))
	defer server.Close()
	requests := [][]byte{requestBytes("x-key: a"), requestBytes("x-key: b")}
	c, err := dial(strings.TrimPrefix(server.URL, "http://"), 3, requests)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	s, err := c.run(50 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for range len(s.times) {
		counts[<-asked]++
	}
	if len(asked) > 0 || counts["a"] != s.statuses[200] || counts["b"] != s.statuses[429] || counts["a"] < 3 || len(counts) != 2 {
		t.Errorf("asked %v, answered %v, %d more", counts, s.statuses, len(asked))
	}
}

func TestAnswersThatCannotBeReadAreErrors(t *testing.T) {
	for _, b := range []string{"HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\ncontent-length: 0\r\n\r\n", "\r\n\r\n",
		"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"} {
		if _, _, err := parseAnswer([]byte(b)); err == nil {
			t.Errorf("%q is read", b)
		}
	}
}
