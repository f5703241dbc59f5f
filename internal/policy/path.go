package policy

import "strings"

// Path is a request's path made ready for matching, once for a request. The zero value matches
// nothing but a prefix of everything. Its texts may share memory with what it was made from.
//
// An escaped slash (%2F) or backslash (%5C) can be read in two ways, and which one a service takes
// cannot be known here. So there may be two readings, and a pattern that fits either one matches:
// kept keeps the escape within its segment, split takes it for a slash.
type Path struct {
	kept, split string
}

// String returns the path with escaped slashes kept.
func (p *Path) String() string { return p.kept }

// NormalizePath makes a request's path ready for matching: what Envoy's normalize_path and
// merge_slashes do, and what a service may do after them, so that no spelling of a path dodges a
// rule. The query goes, from the first '?'; escapes are decoded, except of bytes that have a meaning of
// their own; a backslash is a slash; path parameters (";..." within a segment) are dropped; then
// dot segments and repeated slashes. It is for matching only: nobody forwards the result.
//
// buf is memory that the result may use; it is returned, perhaps grown, to be given again.
func NormalizePath(raw string, buf []byte) (Path, []byte) {
	if i := strings.IndexByte(raw, '?'); i >= 0 {
		raw = raw[:i]
	}
	if isPlainPath(raw) {
		return Path{kept: raw}, buf
	}
	if raw == "*" { // OPTIONS for the whole server
		return Path{kept: raw}, buf
	}
	buf, escapedSlash := appendPath(buf[:0], raw, false)
	p := Path{kept: string(buf)}
	if escapedSlash {
		buf, _ = appendPath(buf[:0], raw, true)
		if string(buf) != p.kept {
			p.split = string(buf)
		}
	}
	return p, buf
}

// isPlainPath reports whether a path is already in normal form, as most are.
func isPlainPath(s string) bool {
	if s == "" || s[0] != '/' {
		return false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '/' || c == '.':
			if s[i-1] == '/' {
				return false
			}
		case !isPlainByte(c):
			return false
		}
	}
	return true
}

// isPlainByte reports whether a byte stands for itself in the normal form of a segment.
func isPlainByte(c byte) bool {
	return isLetterOrDigit(c) || strings.IndexByte("-._~!$&'()*+,=:@", c) >= 0
}

// appendPath appends the normal form segment by segment. slashes: an escaped slash divides, too.
func appendPath(dst []byte, raw string, slashes bool) (out []byte, escapedSlash bool) {
	start := len(dst)
	dst = append(dst, '/')
	for i := 0; i < len(raw); {
		var seg segment
		dst, seg = appendSegment(dst, raw[i:], slashes)
		i += seg.read
		escapedSlash = escapedSlash || seg.escapedSlash
		dst = closeSegment(dst, start, seg.divided)
	}
	return dst, escapedSlash
}

type segment struct {
	read                  int // bytes, with the slash that ends it
	divided, escapedSlash bool
}

// appendSegment appends the segment that s begins with, without its parameters.
func appendSegment(dst []byte, s string, slashes bool) ([]byte, segment) {
	var seg segment
	parameter := false
	for seg.read < len(s) {
		c, n := s[seg.read], 1
		escaped := false
		if c == '%' {
			c, n, escaped = unescape(s[seg.read:])
		}
		seg.read += n
		slash := c == '/' || c == '\\'
		if slash && (!escaped || slashes) {
			seg.divided = true
			return dst, seg
		}
		seg.escapedSlash = seg.escapedSlash || slash
		parameter = parameter || c == ';' && !escaped
		if !parameter {
			dst = appendByte(dst, c)
		}
	}
	return dst, seg
}

// unescape decodes the escape that s begins with; what is no escape stands for itself.
func unescape(s string) (c byte, n int, escaped bool) {
	if len(s) < 3 {
		return '%', 1, false
	}
	hi, lo := unhex(s[1]), unhex(s[2])
	if hi < 0 || lo < 0 {
		return '%', 1, false
	}
	return byte(hi<<4 | lo), 3, true
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	default:
		return -1
	}
}

func appendByte(dst []byte, c byte) []byte {
	if isPlainByte(c) {
		return append(dst, c)
	}
	const digits = "0123456789ABCDEF"
	return append(dst, '%', digits[c>>4], digits[c&15])
}

// closeSegment ends the segment that dst ends with: "." and empty ones vanish, ".." takes the one
// before it along. start is where the path's first slash is.
func closeSegment(dst []byte, start int, divided bool) []byte {
	from := lastSlash(dst)
	switch string(dst[from+1:]) {
	case "", ".":
		return dst[:from+1]
	case "..":
		if from > start {
			from = lastSlash(dst[:from])
		}
		return dst[:from+1]
	}
	if divided {
		dst = append(dst, '/')
	}
	return dst
}

func lastSlash(b []byte) int {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] == '/' {
			return i
		}
	}
	return 0
}
