package parts_test

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
)

// Four accounts of the same requests must agree: the client's, both Envoys',
// the checker's refusals and the upstream's.
func TestLoadThroughTwoEnvoys(t *testing.T) {
	up := parts.StartUpstream(t)
	socket := parts.SocketPath(t)
	(&checker{}).serve(t, "unix", socket)
	authz := &parts.Authz{Address: "unix://" + socket, Timeout: 10 * time.Second}
	opts := parts.EnvoyOpts{Upstream: up.Addr(), Authz: authz}
	one, two := parts.StartEnvoy(t, opts), parts.StartEnvoy(t, opts)

	run, err := load.Start(load.Config{
		Pods: []load.Pod{
			{Name: "one", Target: load.HTTP(one.Addr(), 8)},
			{Name: "two", Target: load.HTTP(two.Addr(), 8)},
		},
		Sources: []load.Source{
			{Name: "good", Rate: load.Constant(400), Poisson: true},
			{Name: "bad", Rate: load.Constant(100), Pods: []string{"two"}, Request: load.Request{
				Method: "POST", Header: map[string]string{"x-refuse": "1"},
			}},
		},
		For:         time.Second,
		Outstanding: 1000,
		Timeout:     time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	result := run.Wait()

	good, bad := result.Of("good"), result.Of("bad")
	if good.Admitted == 0 || good.Admitted != good.Requests() {
		t.Errorf("good: %d of %d admitted (%v)", good.Admitted, good.Requests(), good.LastError)
	}
	if bad.Denied != 100 || bad.Admitted != 0 {
		t.Errorf("bad: %d denied, %d admitted (%v)", bad.Denied, bad.Admitted, bad.LastError)
	}
	if got := up.Count(); got != int64(good.Admitted) {
		t.Errorf("upstream saw %d, %d were admitted", got, good.Admitted)
	}
	for name, envoy := range map[string]*parts.Envoy{"one": one, "two": two} {
		on, stats := result.On(name), envoy.Stats()
		if ok, denied := stats["cluster.upstream.ext_authz.ok"], stats["cluster.upstream.ext_authz.denied"]; ok != int64(on.Admitted) || denied != int64(on.Denied) {
			t.Errorf("envoy %s counted %d and %d, the client %d and %d", name, ok, denied, on.Admitted, on.Denied)
		}
	}
	if worst := good.MaxWindow(time.Hour); worst != good.Admitted {
		t.Errorf("an hour's window holds %d of %d", worst, good.Admitted)
	}
}
