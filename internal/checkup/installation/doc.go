// Package installation has the checks of what every installation of weir has, with or without Kubernetes: Kafka and its
// topics, Redis, the owners of partitions, sidecars and policies.
//
// kafka and redis collect, each fact once, when the first check needs it, and judge nothing. The functions named judge…
// are given facts and read nothing. Checks puts the two together, in the order in which findings are shown: what comes
// first explains what comes after.
package installation
