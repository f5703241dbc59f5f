package policy

// Condition is a limit's compiled `when`: all of its parts must hold. It is immutable and safe for
// concurrent use.
type Condition struct{}
