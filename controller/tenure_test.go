package controller

import "testing"

// A session leads from its election to its end; the next one does not before it is elected itself.
func TestWhoLeads(t *testing.T) {
	var leader tenure
	leads := func(want bool, when string) {
		t.Helper()
		if leader.leads() != want {
			t.Errorf("%s it leads: %v", when, !want)
		}
	}
	leads(false, "before a session")
	first, second := make(chan struct{}), make(chan struct{})
	leader.begin(first)
	leads(false, "as a standby")
	close(first)
	leads(true, "elected")
	leader.end()
	leads(false, "after the session")
	leader.begin(second)
	leads(false, "as a standby again")
}
