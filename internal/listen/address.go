package listen

import (
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// DefaultMode is a unix socket's mode where its address names none: the owner and the shared group.
const DefaultMode fs.FileMode = 0o660

// maxPath is the longest path that the kernel takes for a unix socket (sun_path without its NUL).
const maxPath = 107

// Address is a parsed listen address. Network is "unix" or "tcp"; Path a unix socket's absolute path
// or TCP's host:port. Mode is 0 where the address names none.
type Address struct {
	Network string
	Path    string
	Mode    fs.FileMode
}

// Target is the address as grpc-go dials it.
func (a Address) Target() string {
	if a.Network == "unix" {
		return "unix://" + a.Path
	}
	return "passthrough:///" + a.Path
}

// Loopback reports whether only this machine's processes reach it.
func (a Address) Loopback() bool {
	if a.Network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(a.Path)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Parse reads unix:///path, unix:///path?mode=0660 or tcp://host:port.
func Parse(addr string) (Address, error) {
	scheme, rest, ok := strings.Cut(addr, "://")
	switch {
	case ok && scheme == "unix":
		return parseUnix(addr, rest)
	case ok && scheme == "tcp":
		return parseTCP(addr, rest)
	default:
		return Address{}, fmt.Errorf("listen address %q: write unix:///path/to/socket or tcp://127.0.0.1:9191", addr)
	}
}

func parseUnix(addr, rest string) (Address, error) {
	file, query, _ := strings.Cut(rest, "?")
	a := Address{Network: "unix", Path: path.Clean(file)}
	switch {
	case strings.HasPrefix(file, "@") || strings.HasPrefix(file, "\x00"):
		return Address{}, fmt.Errorf("listen address %q: an abstract socket has no permissions, so any process may connect; give a path", addr)
	case !path.IsAbs(file) || strings.HasSuffix(file, "/"):
		return Address{}, fmt.Errorf("listen address %q: want an absolute path of a socket, unix:///path/to/socket", addr)
	case strings.ContainsRune(file, 0):
		return Address{}, fmt.Errorf("listen address %q: a path holds no NUL byte", addr)
	case len(tempName(a.Path)) > maxPath || len(a.Path) > maxPath:
		return Address{}, fmt.Errorf("listen address %q: the kernel takes socket paths up to %d bytes; choose a shorter directory", addr, maxPath)
	}
	mode, err := modeOf(query)
	if err != nil {
		return Address{}, fmt.Errorf("listen address %q: %w", addr, err)
	}
	a.Mode = mode
	return a, nil
}

func modeOf(query string) (fs.FileMode, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return 0, fmt.Errorf("after the question mark: %w", err)
	}
	for key, v := range values {
		if key != "mode" || len(v) != 1 {
			return 0, fmt.Errorf("only one ?mode=… is known, not %q", query)
		}
	}
	text := values.Get("mode")
	if text == "" {
		return 0, nil
	}
	return ParseMode(text)
}

// ParseMode reads a socket's mode: octal permission bits, such as 0660.
func ParseMode(text string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n == 0 || n > 0o777 {
		return 0, fmt.Errorf("mode %q: want octal permission bits such as 0660", text)
	}
	return fs.FileMode(n), nil
}

func parseTCP(addr, rest string) (Address, error) {
	host, port, err := net.SplitHostPort(rest)
	if err != nil || host == "" {
		return Address{}, fmt.Errorf("listen address %q: write tcp://host:port, for example tcp://127.0.0.1:9191", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Address{}, fmt.Errorf("listen address %q: port %q is no number up to 65535", addr, port)
	} else {
		port = strconv.FormatUint(n, 10)
	}
	return Address{Network: "tcp", Path: net.JoinHostPort(host, port)}, nil
}
