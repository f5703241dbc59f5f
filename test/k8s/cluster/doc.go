// Package cluster starts a real control plane on loopback for tests: kube-apiserver and etcd, and where
// asked kube-controller-manager, with kubectl and helm beside it. make test-k8s builds the programs and
// names their directory by KUBEBUILDER_ASSETS; without that a test is skipped.
//
//	c := cluster.Start(t, cluster.Options{CRDs: []string{crd.Dir}})
//	c.StartControllers(t)
//	c.PlayNode(t, "node-a", nil)
//	c.Apply(t, deployment)
//
// No container runs: PlayNode says of pods that they do, as scheduler and kubelet would. What
// kube-apiserver dials by a Service's cluster address, a webhook above all, is led to an address of this
// machine by Route. Everything ends with the test. A Cluster is safe for concurrent use, but for functions
// that take a testing.TB: those belong to the test's own goroutine.
package cluster
