// Package kubelet plays a node of package cluster whose pods' containers really run where they are of
// weir's programs: as processes of this machine, with the arguments, environment, files, probes and hooks
// of the pod's spec, whoever wrote it. All other containers are said to run.
//
//	k := kubelet.Start(t, c, "node-a", kubelet.Options{})
//	c.Apply(t, deployment) // in a labelled namespace
//	socket := k.Path(t, pod, "weir-sidecar", "/run/weir/check.sock")
//
// What containers give a program and a process does not: a file system, so each volume is a directory, and
// paths below a mount are replaced in arguments, environment and ConfigMaps; a network, so flags give
// each pod addresses of its own on loopback; a user, limits and an image: these are not played. Volumes are
// as they were when the pod started. Status follows the probes, a program that ends is started again
// after a second, and a pod that is deleted ends as on a node: preStop, SIGTERM, SIGKILL after the grace
// period.
package kubelet
