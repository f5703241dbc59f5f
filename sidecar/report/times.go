package report

import "github.com/weirproxy/weir/internal/quota"

// Times says when what a report carries happened, pod time.
type Times struct {
	// Oldest and Newest are when the first and the last of its units were admitted; 0: it carries no new unit.
	Oldest, Newest quota.Time
	// HandedOver is when the report was built.
	HandedOver quota.Time
}

// take widens t by an entry that is handed over at t.HandedOver.
func (t *Times) take(e *quota.Entry) {
	if e.Cumulative == e.Base {
		return
	}
	newest := t.HandedOver - quota.Time(e.Age)
	oldest := newest - quota.Time(e.Span)
	if t.Oldest == 0 || oldest < t.Oldest {
		t.Oldest = oldest
	}
	t.Newest = max(t.Newest, newest)
}

// earlier is the one of two reports' times that makes the longer wait; one that was told is none.
func earlier(a, b Times) Times {
	if b.HandedOver == 0 || a.HandedOver != 0 && a.HandedOver < b.HandedOver {
		return a
	}
	return b
}

// tell hands the times of a report on, once: it is in the decision in force from now on.
func (b *Builder) tell(t *Times) {
	if t.HandedOver != 0 && b.config.Included != nil {
		b.config.Included(*t)
	}
	*t = Times{}
}
