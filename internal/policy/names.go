package policy

import "strings"

// isLabel reports whether s is a DNS label: what Kubernetes names namespaces by.
func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLowerOrDigit(c) && c != '-' {
			return false
		}
	}
	return true
}

// isName reports whether s is a DNS subdomain: labels with dots between them.
func isName(s string) bool {
	if len(s) > 253 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if !isLabel(part) {
			return false
		}
	}
	return true
}

func isKind(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLetterOrDigit(c) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// isToken reports whether s is an HTTP token of at most limit bytes: a method or a header's name.
func isToken(s string, limit int) bool {
	for i := range len(s) {
		if c := s[i]; !isLetterOrDigit(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= limit
}

func isLowerOrDigit(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func isLetterOrDigit(c byte) bool { return isLowerOrDigit(c) || c >= 'A' && c <= 'Z' }
