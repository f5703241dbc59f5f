// Package containers holds the Containerfile and .ko.yaml to what they say: each program of cmd/ has an image, built
// by the Makefile's flags from a context that lacks nothing, and run as the user that the injector and the chart
// name. No image is built: that takes a registry.
package containers
