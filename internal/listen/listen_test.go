package listen

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// socketDir is short, since the kernel bounds socket paths.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "l")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func modeOfFile(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func canConnect(path string) bool {
	c, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func TestCase23ModeIsSetByTheListenAddress(t *testing.T) {
	old := syscall.Umask(0o077) // whatever the process's own mask is
	defer syscall.Umask(old)
	for name, tt := range map[string]struct {
		query   string
		setting fs.FileMode
		want    fs.FileMode
	}{
		"default":                  {"", 0, 0o660},
		"setting":                  {"", 0o600, 0o600},
		"address before setting":   {"?mode=0666", 0o600, 0o666},
		"address without a zero":   {"?mode=777", 0, 0o777},
		"empty mode is no mode":    {"?mode=", 0o640, 0o640},
		"question mark by itself ": {"?", 0, 0o660},
	} {
		path := filepath.Join(socketDir(t), "s")
		l, err := Listen("unix://"+path+tt.query, tt.setting)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := modeOfFile(t, path); got != tt.want {
			t.Errorf("%s: mode %o, want %o", name, got, tt.want)
		}
		if got := l.Addr().String(); got != path {
			t.Errorf("%s: Addr %q, want the path clients use, %q", name, got, path)
		}
		l.Close()
	}
}

func TestCase23StaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false) // as a killed process leaves it
	dead.Close()
	l, err := Listen("unix://"+path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !canConnect(path) {
		t.Error("nobody answers on the new socket")
	}
}

func TestCase23LiveSocketIsRefusedAndUnharmed(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	first, err := Listen("unix://"+path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, err = Listen("unix://"+path, 0)
	if err == nil || !strings.Contains(err.Error(), "another process listens on "+path) || !strings.Contains(err.Error(), "choose another") {
		t.Errorf("second Listen: %v, want a refusal with a remedy", err)
	}
	if !canConnect(path) {
		t.Error("the first listener was harmed")
	}
}

func TestCloseRemovesItsSocketOnly(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	l, err := Listen("unix://"+path, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	l.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("after Close the socket is still there (%v)", err)
	}
	l, err = Listen("unix://"+path, 0)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(path)
	if err := os.WriteFile(path, []byte("another's"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Error("Close removed what was not its own")
	}
}

func TestWhatIsNoSocketIsNotRemoved(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix://"+path, 0); err == nil || !strings.Contains(err.Error(), "is no socket: remove it") {
		t.Errorf("Listen: %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "precious" {
		t.Error("the file was touched")
	}
}

func TestMissingDirectorySaysWhatToDo(t *testing.T) {
	_, err := Listen("unix://"+filepath.Join(socketDir(t), "no", "s"), 0)
	if err == nil || !strings.Contains(err.Error(), "create the directory") {
		t.Errorf("Listen: %v", err)
	}
}

func TestTCP(t *testing.T) {
	l, err := Listen("tcp://127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Listen("tcp://"+l.Addr().String(), 0); err == nil || !strings.Contains(err.Error(), "choose another") {
		t.Errorf("a taken port: %v, want a remedy", err)
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]Address{
		"unix:///run/weir/check.sock":           {"unix", "/run/weir/check.sock", 0},
		"unix:///run//weir/../weir/c?mode=0600": {"unix", "/run/weir/c", 0o600},
		"tcp://127.0.0.1:9191":                  {"tcp", "127.0.0.1:9191", 0},
		"tcp://[::1]:09191":                     {"tcp", "[::1]:9191", 0},
		"tcp://localhost:0":                     {"tcp", "localhost:0", 0},
	} {
		if got, err := Parse(in); err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
	for in, reason := range map[string]string{
		"":                                    "unix:///path",
		"/run/weir.sock":                      "unix:///path",
		"http://127.0.0.1:1":                  "tcp://",
		"unix://@weir":                        "no permissions",
		"unix://\x00weir":                     "no permissions",
		"unix://run/weir.sock":                "absolute path",
		"unix:///run/":                        "absolute path",
		"unix:///a\x00b":                      "NUL",
		"unix:///" + strings.Repeat("d", 120): "shorter",
		"unix:///" + strings.Repeat("d/", 52): "absolute",
		"unix:///s?mode=rw":                   "octal",
		"unix:///s?mode=1777":                 "octal",
		"unix:///s?mode=0":                    "octal",
		"unix:///s?mode=0600&mode=0660":       "only one",
		"unix:///s?made=0600":                 "only one",
		"tcp://127.0.0.1":                     "tcp://host:port",
		"tcp://:9191":                         "tcp://host:port",
		"tcp://127.0.0.1:http":                "no number",
		"tcp://127.0.0.1:70000":               "no number",
	} {
		if got, err := Parse(in); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("Parse(%q) = %+v, %v; want an error with %q", in, got, err, reason)
		}
	}
}

func TestLoopback(t *testing.T) {
	for in, want := range map[string]bool{
		"unix:///s": true, "tcp://127.0.0.1:1": true, "tcp://127.9.9.9:1": true, "tcp://[::1]:1": true,
		"tcp://localhost:1": true, "tcp://0.0.0.0:1": false, "tcp://10.0.0.1:1": false, "tcp://[::]:1": false,
	} {
		a, err := Parse(in)
		if err != nil || a.Loopback() != want {
			t.Errorf("%s: loopback %v (%v), want %v", in, a.Loopback(), err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"unix:///run/s?mode=0660", "tcp://[::1]:9", "unix://@a", "tcp://a:b:c", "%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		a, err := Parse(in)
		if err != nil {
			return
		}
		again := a.Network + "://" + a.Path
		if a.Network == "unix" && strings.Contains(a.Path, "?") {
			t.Fatalf("a query was left in the path %q", a.Path)
		}
		b, err := Parse(again)
		if err != nil || b.Path != a.Path {
			t.Fatalf("Parse(%q) = %+v, %v; first was %+v", again, b, err, a)
		}
	})
}
