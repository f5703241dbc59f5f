package memory

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// none: kernels without a limit name one near 2^63.
const none = 1 << 60

// Limit is the smallest memory limit, bytes, of the process's control group and those above it, as
// far as they are to be seen under root; 0: none.
func Limit(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := int64(0)
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path; version 2 is hierarchy 0 and names no controllers.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			least = smaller(least, upwards(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			least = smaller(least, upwards(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	return least
}

// smaller of two limits, of which 0 is none.
func smaller(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// upwards is the smallest limit from a group up to the root of what is mounted. In a container the path may be the
// host's, of which only the root is there.
func upwards(root fs.FS, dir, group, file string) (least int64) {
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		least = smaller(least, read(root, path.Join(dir, group, file)))
		if group == "/" {
			return least
		}
	}
}

// read is the limit that a file names; 0: none ("max", or no such file).
func read(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	l, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || l <= 0 || l >= none {
		return 0
	}
	return l
}
