// Package controller tests weir-controller on a real kube-apiserver, as a user with exactly the rights that the
// chart gives it, with a Kafka in this process and sidecars that are played.
package controller
