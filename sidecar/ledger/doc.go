// Package ledger is which counter has which slot on this pod: slots of quota.Cell in fixed segments
// (a slot never moves), and a concurrent table from counter id to slot.
//
// Check goroutines look slots up without a lock or an allocation, make the missing ones under a
// short lock of one shard, and mark those they charged. The control goroutine alone takes what was
// made and marked, removes idle slots and gives their cells out again. A check pins the ledger for
// as long as it holds slots: a removed cell is not given out again before every check that could
// have found it has unpinned (the scheme of sleepable RCU).
//
// Everything is bounded: see Config. What a slot's counter means is the business of internal/quota.
package ledger
