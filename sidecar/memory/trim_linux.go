package memory

import (
	"bufio"
	"io"
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

// spans are where the program's file is mapped as it is: not to be written to, and nothing written before. (What a
// loader has relocated and then protected, as in a position-independent program, is not in the file.)
func spans() []span {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil
	}
	defer func() { _ = maps.Close() }()
	return unwritten(maps, exe)
}

// unwritten reads /proc/PID/smaps: a line for each mapping, then lines about it, of which "Anonymous:" says how much of it
// is the process's own.
func unwritten(smaps io.Reader, exe string) (out []span) {
	lines := bufio.NewScanner(smaps)
	var last span
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) > 1 && fields[0] == "Anonymous:":
			if last != (span{}) && fields[1] == "0" {
				out = append(out, last)
			}
		case len(fields) > 1 && strings.HasSuffix(fields[0], ":"):
		default:
			last, _ = readOnly(lines.Text(), exe)
		}
	}
	return out
}

// readOnly reads a mapping's line: "from-to permissions offset device inode name". ok: it is a private mapping of exe that
// cannot be written to.
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
	if err != nil || to <= from {
		return span{}, false
	}
	return span{uintptr(from), uintptr(to)}, true
}
