// Package reconcile is the controller's loop over QuotaPolicy objects: validate, find the targets, publish,
// say in the status where the policy is in force.
//
// One reconcile reads caches only, writes at most one record of the topic and one patch of the status, and
// neither where nothing changed. It asks no clock but to pace itself. There is no finalizer: a policy that is gone has
// its record deleted, and one that went while no controller ran is found in the topic at start.
//
// What makes a policy be looked at again: itself; the Services, workloads and routes that it names; pods of
// its targets, gathered for a moment; and what the topics say.
package reconcile
