// Package policy turns QuotaPolicy documents into what programs work with: it parses them strictly
// (every error with file, line and field path, all at once), validates, publishes secrets as keyed
// hashes only, compiles, and resolves the amount that applies to a counter. Pod and owner resolve by
// the same function of policy and identity, so overrides need not be sent.
//
// Nothing here does I/O or knows Kafka, Envoy or Kubernetes.
package policy
