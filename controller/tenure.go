package controller

import "sync/atomic"

// tenure tells whether this process leads now: in a session that has been elected and has not ended. The zero value
// does not lead. It is safe for concurrent use.
type tenure struct {
	elected atomic.Pointer[<-chan struct{}]
}

// begin is called for a session, whose elected is closed once it leads.
func (t *tenure) begin(elected <-chan struct{}) { t.elected.Store(&elected) }

// end is called when the session is over: in order, or as its lease was lost.
func (t *tenure) end() { t.elected.Store(nil) }

func (t *tenure) leads() bool {
	elected := t.elected.Load()
	if elected == nil {
		return false
	}
	select {
	case <-*elected:
		return true
	default:
		return false
	}
}
