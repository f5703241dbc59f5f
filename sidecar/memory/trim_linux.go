package memory

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// trimmer lets pages of the program's own file go. The zero value finds them at the first trim.
type trimmer struct {
	found bool
	spans []span
}

// span is a range of addresses.
type span struct{ from, to uintptr }

// trim unmaps the pages of the program's file that nobody writes to, its code and constants: most of those that are
// mapped were needed by the start alone, or lie beside one that is needed, of which the kernel maps 64 KiB at once.
// They stay in its cache; what is used again is mapped again, without reading, in about a microsecond.
func (t *trimmer) trim() {
	if !t.found {
		t.found, t.spans = true, spans()
	}
	for _, s := range t.spans {
		// Refused at worst, and then the pages stay.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, s.from, s.to-s.from, syscall.MADV_DONTNEED)
	}
}

// spans are where the program's file is mapped and cannot be written to.
func spans() (out []span) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer func() { _ = maps.Close() }()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		if s, ok := readOnly(lines.Text(), exe); ok {
			out = append(out, s)
		}
	}
	return out
}

// readOnly reads a line of /proc/PID/maps: "from-to permissions offset device inode name". ok: it is a private mapping of
// exe that cannot be written to, so that the file holds all that is in it.
func readOnly(line, exe string) (s span, ok bool) {
	name := strings.IndexByte(line, '/')
	if name < 0 || line[name:] != exe {
		return span{}, false
	}
	where, rest, _ := strings.Cut(line, " ")
	if len(rest) < 4 || rest[0] != 'r' || rest[1] != '-' || rest[3] != 'p' {
		return span{}, false
	}
	low, high, _ := strings.Cut(where, "-")
	from, err := strconv.ParseUint(low, 16, 64)
	if err != nil {
		return span{}, false
	}
	to, err := strconv.ParseUint(high, 16, 64)
	return span{uintptr(from), uintptr(to)}, err == nil && to > from
}
