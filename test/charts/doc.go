// Package charts tests the charts without a cluster: what Helm's own engine renders of them, held as golden files, and
// what weir's programs say of the configuration files in it.
package charts
