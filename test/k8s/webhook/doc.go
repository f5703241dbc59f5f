// Package webhook tests the injection webhook on a real kube-apiserver: pods of real workloads go through its
// admission (Pod Security, ServiceAccount, LimitRanger and Istio's own injector among it) with the webhook, its
// Service and its rights as the chart makes them. No container runs.
package webhook
