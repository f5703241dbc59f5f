// Package listen opens the addresses that programs listen on: unix:///path (with a mode of its own, a
// stale socket replaced and a live one refused) and tcp://host:port. Every error says what to do.
package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Listen opens addr (see Parse). A unix socket's mode is the address's own, else mode, else
// DefaultMode; it is in force before the socket appears under its path. A socket that nobody listens
// on is replaced, one that answers is refused. Close removes the socket, unless the path has become
// another's meanwhile.
func Listen(addr string, mode fs.FileMode) (net.Listener, error) {
	a, err := Parse(addr)
	if err != nil {
		return nil, err
	}
	if a.Network == "tcp" {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", a.Path)
		if err != nil {
			return nil, fmt.Errorf("listen on %s: %w%s", addr, err, remedy(err))
		}
		return l, nil
	}
	if a.Mode != 0 {
		mode = a.Mode
	}
	if mode == 0 {
		mode = DefaultMode
	}
	l, err := listenUnix(a.Path, mode)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w%s", addr, err, remedy(err))
	}
	return l, nil
}

// remedy is what a person can do about err; "" where the error says it already.
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "; another process has this address: stop it or choose another"
	case errors.Is(err, fs.ErrNotExist):
		return "; create the directory or mount the volume that holds the socket"
	case errors.Is(err, fs.ErrPermission):
		return "; run as a user that may write there, or choose another place"
	default:
		return ""
	}
}

// listenUnix binds beside the path and renames, so that no client ever sees the socket with another
// mode, and a stale socket is replaced in one step.
func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if err := vacate(path); err != nil {
		return nil, err
	}
	temp := tempName(path)
	inner, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil, err
	}
	inner.SetUnlinkOnClose(false)
	l := &unixListener{UnixListener: inner, path: path}
	if err := l.publish(temp, mode); err != nil {
		return nil, errors.Join(err, inner.Close(), os.Remove(temp))
	}
	return l, nil
}

// tempName differs at each call, since several listeners may share a directory.
func tempName(path string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".weir-%08x", rand.Uint32())) //nolint:gosec // a name, no secret
}

// vacate looks at what is there: nothing or a stale socket is fine.
func vacate(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is no socket: remove it or choose another path", path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("another process listens on %s: stop it or choose another path", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil // stale: rename replaces it
	case errors.Is(err, fs.ErrNotExist):
		return nil // its owner removed it meanwhile
	default:
		return fmt.Errorf("cannot tell whether another process listens on %s (%w): remove the socket if none does", path, err)
	}
}

type unixListener struct {
	*net.UnixListener
	path string
	info fs.FileInfo
	once sync.Once
}

func (l *unixListener) publish(temp string, mode fs.FileMode) error {
	if err := os.Chmod(temp, mode); err != nil {
		return err
	}
	info, err := os.Lstat(temp)
	if err != nil {
		return err
	}
	l.info = info
	return os.Rename(temp, l.path)
}

// Addr is the address by which clients know the socket.
func (l *unixListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close ends the listener and removes the socket if it is still this one's.
func (l *unixListener) Close() error {
	l.once.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.info) {
			_ = os.Remove(l.path)
		}
	})
	return l.UnixListener.Close()
}
