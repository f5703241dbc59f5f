package log

// The names of log fields. A new one is added here, in the unit's name where there is one.
const (
	Program   = "program"
	Version   = "version"
	Error     = "error" // as zap.Error names it
	Address   = "address"
	Server    = "server"
	Reason    = "reason"
	Waiting   = "waiting_for"
	Topic     = "topic"
	Partition = "partition"
	Offset    = "offset"
	Epoch     = "epoch"
	Sequence  = "sequence"
	Instance  = "instance"
	LogID     = "log_id"
	Pod       = "pod"
	Target    = "target"
	Policy    = "policy"
	PolicyVer = "policy_version"
	File      = "file"
	Count     = "count"
	Duration  = "duration"
	Attempt   = "attempt"
	Signal    = "signal"
	Outcome   = "outcome"
	Object    = "object"
	Until     = "until"
)
