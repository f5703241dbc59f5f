// Package controller is weir-controller: it brings QuotaPolicy objects into the policy topic, says in their
// status where they are in force, copies the Secrets that sidecars need, and serves the injection webhook.
//
// Several replicas run. All of them serve the webhook, and keep caches and mirrors of the topics warm; the
// one that holds the lease writes. What kube-apiserver or Kafka being away means: it is said in /readyz and
// in the log, and work goes on when they are back.
//
// The parts: reconcile (policies), publish and fleet (the topics), status (what a status says, pure), secrets
// (copies), webhook and certs (injection). This package only assembles them.
package controller
