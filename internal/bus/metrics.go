package bus

import "github.com/rcrowley/go-metrics"

// Sarama counts every request in histograms of its own, for each broker and topic: 1.5 MB in a sidecar, and a
// goroutine that never ends. Nothing here shows them; what weir exports it counts itself.
func init() { metrics.UseNilMetrics = true }
