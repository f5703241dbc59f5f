// Package story is weir on Kubernetes from its installation to its end, as one test that a person can read:
// the charts as they are, on a real kube-apiserver with its controllers, a real Kafka, Redis and istiod, and
// real Envoys. Every program of weir runs as a process with the arguments, files, probes and rights of the
// pod that the chart or the injector made (package kubelet).
package story
