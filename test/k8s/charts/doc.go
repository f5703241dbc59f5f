// Package charts tests the charts on a real kube-apiserver with Helm itself: what it makes of them is valid there and within
// the Pod Security Standard restricted, a release's life from install to uninstall, and the rights that it gives. What they
// render to without a server is tested in test/charts.
package charts
