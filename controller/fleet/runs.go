package fleet

import "time"

// inFlight is how long after a new run of a pod was seen a record of its last run may still arrive: above
// what a sidecar gives one record.
const inFlight = 5 * time.Second

// keepRun is how long a run is remembered after it was last asked for.
const keepRun = 10 * time.Minute

// runs tells a record of a pod's present run from one that its last run left behind: a sidecar that is killed
// writes no tombstone, and a pod of a StatefulSet comes back under its name. Not safe for concurrent use.
type runs map[string]*run

type run struct {
	id    string
	first uint64 // the first epoch that was heard during the run; 0: none yet
	since time.Duration
	left  uint64 // the epoch of the run before; 0: none known
	asked time.Duration
	owed  bool // that its record is of a former run was said, and is to be taken back
}

// former reports whether a record of this epoch, heard then, is of an earlier run than id. It is, if the run
// before had that epoch and nothing of it came after this run was seen: a process has one epoch for its life.
// So what is of the present run counts at once or, where that is not certain, from its next heartbeat on.
func (r runs) former(pod, id string, epoch uint64, heard, now time.Duration) bool {
	if id == "" {
		return false
	}
	at := r[pod]
	switch {
	case at == nil:
		if len(r) >= maxPods {
			return false
		}
		at = &run{id: id, since: now}
		r[pod] = at
	case at.id != id:
		*at = run{id: id, since: now, left: at.first}
	}
	at.asked = now
	if at.owed = epoch != 0 && epoch == at.left && heard <= at.since+inFlight; at.owed {
		return true
	}
	if at.first == 0 {
		at.first = epoch
	}
	return false
}

// renewed reports whether a pod's record, which was said to be of a former run, is of the present one after all,
// by when it was heard.
func (r runs) renewed(pod string, heard time.Duration) bool {
	at := r[pod]
	if at == nil || !at.owed || heard <= at.since+inFlight {
		return false
	}
	at.owed = false
	return true
}

// tick forgets runs that nobody asks for.
func (r runs) tick(now time.Duration) {
	for name, at := range r {
		if now-at.asked > keepRun {
			delete(r, name)
		}
	}
}
