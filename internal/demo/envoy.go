package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirproxy/weir/internal/listen"
	"github.com/weirproxy/weir/internal/render"
)

// envoy is one Envoy process.
type envoy struct {
	binary string
	dir    string // of its own
	socket string // the sidecar's unix socket
	port   int    // the upstream's
}

// findEnvoy is the binary to run: the one named, else .tools/bin/envoy, else the PATH's. "" without an error:
// none was named and none is there.
func findEnvoy(named string) (string, error) {
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("--envoy %s: %w", named, err)
		}
		return filepath.Abs(path)
	}
	for _, candidate := range []string{filepath.Join(".tools", "bin", "envoy"), "envoy"} {
		if path, err := exec.LookPath(candidate); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", nil
}

// config is what weir render prints, on ports that the kernel picks. The time-out outlasts a machine that runs a whole
// fleet on few cores; the upstream tells the load which requests nobody checked.
func (e *envoy) config() ([]byte, error) {
	const anyPort = "127.0.0.1:0"
	return render.Envoy(render.Options{
		Targets:  []string{"demo/Service/demo"}, // for the comment: the sidecar knows its own
		Check:    listen.Address{Network: "unix", Path: e.socket},
		Timeout:  time.Second,
		Listener: anyPort, Admin: anyPort, Service: net.JoinHostPort("127.0.0.1", strconv.Itoa(e.port)),
		MarkUnchecked: true,
	})
}

// run starts the process and ends it with ctx, by its own id. ready is told the address to ask once the
// listener serves.
func (e *envoy) run(ctx context.Context, ready func(addr string)) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	file, adminFile := filepath.Join(e.dir, "envoy.yaml"), filepath.Join(e.dir, "admin")
	if err := os.WriteFile(file, cfg, 0o600); err != nil {
		return err
	}
	logFile, err := os.Create(filepath.Join(e.dir, "envoy.log"))
	if err != nil {
		return err
	}
	defer logFile.Close()
	cmd := exec.CommandContext(ctx, e.binary, "-c", file, "--admin-address-path", adminFile,
		"--disable-hot-restart", "--concurrency", "1", "--log-level", "warning", "--drain-time-s", "1")
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = endWithUs()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second // then SIGKILL
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start Envoy: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return e.watch(ctx, ended, adminFile, ready)
}

// watch waits for the listener, then for the end.
func (e *envoy) watch(ctx context.Context, ended <-chan error, adminFile string, ready func(string)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	poll := tick.C
	for {
		select {
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			if err == nil {
				err = errors.New("exit status 0")
			}
			return fmt.Errorf("Envoy ended by itself (%w); it said: %s", err, e.lastWords())
		case <-poll:
			if addr, err := listenerAddress(ctx, adminFile); err == nil {
				poll = nil
				ready(addr)
			}
		}
	}
}

func (e *envoy) lastWords() string {
	b, err := os.ReadFile(filepath.Join(e.dir, "envoy.log"))
	if err != nil || len(b) == 0 {
		return "nothing"
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}

var errNotReady = errors.New("not ready yet")

// listenerAddress asks Envoy's admin server, whose address is in a file, where the listener is.
func listenerAddress(ctx context.Context, adminFile string) (string, error) {
	admin, err := os.ReadFile(adminFile)
	if err != nil || len(admin) == 0 {
		return "", errNotReady
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var state struct {
		Listeners []struct {
			Address struct {
				Socket struct {
					Address string `json:"address"`
					Port    int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	base := "http://" + strings.TrimSpace(string(admin))
	if err := getJSON(ctx, base+"/ready", nil); err != nil {
		return "", err
	}
	if err := getJSON(ctx, base+"/listeners?format=json", &state); err != nil {
		return "", err
	}
	if len(state.Listeners) == 0 || state.Listeners[0].Address.Socket.Port == 0 {
		return "", errNotReady
	}
	s := state.Listeners[0].Address.Socket
	return fmt.Sprintf("%s:%d", s.Address, s.Port), nil
}

// getJSON gets url and reads the answer into out, if that is not nil.
func getJSON(ctx context.Context, url string, out any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errNotReady
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(out)
}
