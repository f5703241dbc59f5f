package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"
)

// Bounds of the memory and time that whoever reaches the port can take. A review costs about a thousand bytes a value
// while it is worked on.
const (
	// maxReviews are worked on at a time, and maxLarge of them may be larger than smallReview bytes or hold more
	// than fewValues. Others wait.
	maxReviews  = 16
	maxLarge    = 2
	smallReview = 64 << 10
	fewValues   = 2_000
	// readTimeout bounds a body's arrival, and maxWait all until a review is begun.
	readTimeout = 2 * time.Second
	maxWait     = 3 * time.Second
)

var errBusy = errors.New("too many reviews are worked on")

// places are those of all reviews of one handler.
type places struct{ work, large chan struct{} }

func newPlaces() places {
	return places{work: make(chan struct{}, maxReviews), large: make(chan struct{}, maxLarge)}
}

// turn is what one review holds of them: first of the large ones, then of all, so that no two wait for each other.
type turn struct {
	places
	held []chan struct{}
}

// take waits for a place until ctx ends, once for each kind.
func (t *turn) take(ctx context.Context, of chan struct{}) error {
	if slices.Contains(t.held, of) {
		return nil
	}
	select {
	case of <- struct{}{}:
		t.held = append(t.held, of)
		return nil
	case <-ctx.Done():
		return errBusy
	}
}

// end gives all back; it may be called again.
func (t *turn) end() {
	for _, of := range t.held {
		<-of
	}
	t.held = nil
}

// read is r's body. It holds no place until it has come but for a large one's, so that who sends slowly keeps
// nobody waiting who sends a pod of ordinary size.
func (t *turn) read(ctx context.Context, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(readTimeout)) // a test's recorder has no connection
	body, err := t.receive(ctx, http.MaxBytesReader(w, r.Body, MaxReview))
	if err != nil {
		return nil, err // the deadline stays: the server reads what is left of the body
	}
	_ = conn.SetReadDeadline(time.Time{}) // or it would end the request while that waits
	if values(body) > fewValues {
		err = t.take(ctx, t.large)
	}
	return body, err
}

// receive reads in; more than a small review needs a place.
func (t *turn) receive(ctx context.Context, in io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(in, smallReview))
	if err != nil {
		return nil, unread(err)
	}
	if len(body) < smallReview {
		return body, nil
	}
	if err := t.take(ctx, t.large); err != nil {
		return nil, err
	}
	rest, err := io.ReadAll(in)
	if err != nil {
		return nil, unread(err)
	}
	return append(body, rest...), nil
}

// values is how many values a JSON text holds, or more where it is none.
func values(text []byte) (n int) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && (c == '{' || c == '[' || c == ','):
			n++
		}
	}
	return n
}
