// Package publish is the controller's hand on weir.policies: a mirror of what the topic holds, and the
// writer of origin kube. It touches no record of another origin.
//
// Nothing is written that is in the topic already, so a controller that restarts writes nothing. What another
// writer changed, what was deleted behind the controller's back, and a topic made anew are told of by
// Changes: publishing again puts them right. Kafka that is away is an error to the caller, who tries
// again. book is pure; Topic is the shell around it.
package publish
