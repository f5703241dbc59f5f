package unary

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weirproxy/weir/test/parts"
)

// Envoy asks as a filter, and loses no check though its connections end all the time for idleness: it
// would answer 403.
func TestEnvoy(t *testing.T) {
	root, err := parts.Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".tools", "bin", "envoy")); err != nil {
		t.Skip("no Envoy: make envoy")
	}
	allow := func(_, reply []byte) ([]byte, codes.Code, string) { return append(reply, 0x0a, 0), codes.OK, "" }
	for name, o := range map[string]Options{"": {}, "idle": {Idle: 20 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			path, stop := start(t, New(Methods{"/envoy.service.auth.v3.Authorization/Check": allow}, o))
			t.Cleanup(stop)
			envoy := parts.StartEnvoy(t, parts.EnvoyOpts{
				Concurrency: 2, Authz: &parts.Authz{Address: "unix://" + path, Timeout: patience},
			})
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() {
					for i := range 50 {
						if code := get(t, envoy.URL()); code != http.StatusOK {
							t.Errorf("status %d", code)
						}
						if i%10 == 0 {
							time.Sleep(25 * time.Millisecond) // so that connections are idle
						}
					}
				})
			}
			callers.Wait()
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

func get(t *testing.T, url string) int {
	res, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// h2load, of nghttp2, drives many streams on each of several connections, with windows of its own.
func TestH2load(t *testing.T) {
	program, err := exec.LookPath("h2load")
	if err != nil {
		t.Skip("no h2load: apt install nghttp2-client")
	}
	body := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(body, message(string(request800())), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "-n", "20000", "-c", "4", "-m", "100", "-w", "16",
		"-B", "unix:"+listen(t, Options{}), "-H", "content-type: application/grpc", "-H", "te: trailers",
		"-d", body, "http://localhost"+echo).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !regexp.MustCompile(`20000 succeeded, 0 failed, 0 errored`).Match(out) {
		t.Fatalf("%s", out)
	}
	t.Logf("%s", regexp.MustCompile(`finished in.*`).Find(out))
}
