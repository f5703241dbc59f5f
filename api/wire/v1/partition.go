package wirev1

// Partition places a target on a partition of weir.usage and weir.decisions: 64-bit FNV-1a of
// the canonical name, finished as in MurmurHash3 (fmix64) so that the low bits are even, modulo
// partitions. Fixed for ever and unkeyed; golden-tested. partitions must be positive.
func Partition(target string, partitions int32) int32 {
	h := uint64(14695981039346656037)
	for i := range len(target) {
		h = (h ^ uint64(target[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return int32(h % uint64(partitions)) //nolint:gosec // below partitions, an int32
}
