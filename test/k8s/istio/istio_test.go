package istio_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/k8s/istio"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

const (
	patience    = 60 * time.Second
	checkFilter = "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz"
	tokenFilter = "envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication"
)

// mesh is what all tests share, as its start takes seconds.
type mesh struct {
	cluster *cluster.Cluster
	istiod  *istio.Istiod
	world   *world.World
	check   string // where a sidecar listens on loopback
	socket  string // and another on a socket
}

// naive is what people try first: the address of the sidecar itself.
const naive = `meshConfig: {extensionProviders: [{name: naive, envoyExtAuthzGrpc: {service: 127.0.0.1, port: 9191, failOpen: true}}]}`

func TestIstio(t *testing.T) {
	m := &mesh{cluster: cluster.Start(t, cluster.Options{CRDs: []string{istio.CRDs(t), istio.GatewayCRDs(t)}})}
	m.cluster.PlayNode(t, "node-a", nil)
	m.check = "tcp://127.0.0.1:" + strconv.Itoa(freePort(t))
	m.socket = "unix://" + parts.SocketPath(t)
	m.istiod = istio.Start(t, m.cluster, naive,
		render(t, "istio", "--mesh-config", "--target", "shop/orders", "--check", m.check),
		render(t, "istio", "--mesh-config", "--target", "nook/orders", "--check", m.socket),
		render(t, "istio", "--mesh-config", "--target", "bank/orders", "--check", m.check, "--fail", "closed"))
	m.world = world.Settled(t, 0, 1, policy("shop"), policy("nook"), byToken("filtered"), onRoute("orders", 3), onRoute("stock", 5))
	t.Run("custom", func(t *testing.T) { m.custom(t, "shop", m.check) })
	t.Run("custom on a socket", func(t *testing.T) { m.custom(t, "nook", m.socket) })
	t.Run("envoyfilter", m.envoyFilter)
	t.Run("gateway", m.gateway)
	t.Run("case 24", m.case24)
}

// render is what the command prints, with more patience than by default: on a busy machine a check may take
// longer, and its request would pass uncounted.
func render(t *testing.T, args ...string) string {
	t.Helper()
	out, err := parts.Command(t, "weir", append([]string{"render", "--timeout", "5s"}, args...)...).Output()
	if err != nil {
		t.Fatalf("weir render %v: %v", args, err)
	}
	return string(out)
}

// policy lets each client have three requests an hour.
func policy(namespace string) string {
	return strings.ReplaceAll(world.Policy("  - {name: each-client, counters: [Client], rates: [{limit: 3, window: 1h}]}\n"), "namespace: shop", "namespace: "+namespace)
}

// byToken is policy for a namespace whose callers have tokens, or keys.
func byToken(namespace string) string {
	return strings.Replace(policy(namespace), "client: [", "client: [{source: JWTClaim, name: sub}, ", 1)
}

// onRoute is a policy of one of a gateway's routes.
func onRoute(route string, limit int) string {
	return strings.NewReplacer("name: orders, namespace", "name: "+route+", namespace", `group: "", kind: Service, name: orders`,
		"group: gateway.networking.k8s.io, kind: HTTPRoute, name: "+route, "limit: 3", "limit: "+strconv.Itoa(limit)).Replace(policy("edge"))
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := parts.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// sidecar starts a pod's weir-sidecar and waits until it enforces.
func (m *mesh) sidecar(t *testing.T, namespace, listen string, targets ...string) *world.Pod {
	t.Helper()
	admin := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	p := &world.Pod{Name: "orders-0", Admin: admin, Args: []string{
		"run", "--listen", listen, "--identity-key-file", m.world.Key, "--kafka-brokers", m.world.Kafka.Addr(),
		"--pod-namespace", namespace, "--pod-name", namespace + "-0",
		"--state-dir", t.TempDir(), "--admin-address", "tcp://" + admin,
	}}
	for _, target := range targets {
		p.Args = append(p.Args, "--target", target)
	}
	p.Sidecar = parts.Program(t, "weir-sidecar", p.Args...)
	m.world.PodReady(p)
	return p
}

// envoy starts the Envoy of a pod of the app orders, and returns it with the URL of its listener.
func (m *mesh) envoy(t *testing.T, namespace, manifests string) (*istio.Envoy, string) {
	t.Helper()
	m.cluster.Namespace(t, namespace, nil)
	port := freePort(t)
	m.cluster.Apply(t, istio.Sidecar(namespace, "orders", port, m.world.Upstream.Addr()))
	m.cluster.Apply(t, manifests)
	pod := istio.Pod(t, m.cluster, namespace, "orders-0", map[string]string{"app": "orders"})
	return m.istiod.StartEnvoy(t, "sidecar", pod), fmt.Sprintf("http://127.0.0.1:%d/orders", port)
}

var client = &http.Client{Timeout: 10 * time.Second}

// ask sends one request; header is name, value, …
func ask(url string, header ...string) (*http.Response, string, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, "", err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// expect asks until the answer has a status: istiod tells an Envoy of changes in its own time.
func expect(t *testing.T, status int, url string, header ...string) *http.Response {
	t.Helper()
	var last *http.Response
	parts.Eventually(t, patience, fmt.Sprintf("an answer %d", status), func() error {
		resp, body, err := ask(url, header...)
		if err != nil {
			return err
		}
		last = resp
		if resp.StatusCode != status {
			return errors.New(resp.Status + " " + body)
		}
		return nil
	})
	return last
}

// enforced asks for a client until it is refused: just as often as the policy says.
func enforced(t *testing.T, limit int, url string, header ...string) {
	t.Helper()
	passed := 0
	for {
		resp, body, err := ask(url, header...)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusTooManyRequests {
			if wait, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || wait <= 0 || !strings.Contains(body, "each-client") {
				t.Errorf("refused with %v %s", resp.Header, body)
			}
			break
		}
		if passed++; resp.StatusCode != http.StatusOK || passed > limit {
			t.Fatalf("request %d: %s %s", passed, resp.Status, body)
		}
	}
	if passed != limit {
		t.Errorf("%d requests passed, want %d", passed, limit)
	}
}

// The CUSTOM provider as it is printed: requests pass, then get their 429; when the sidecar is gone they
// pass uncounted. Istio asks before it looks at tokens and at what it denies, as the documentation says.
func (m *mesh) custom(t *testing.T, namespace, check string) {
	issuer := newIssuer(t)
	sidecar := m.sidecar(t, namespace, check, namespace+"/Service/orders")
	e, url := m.envoy(t, namespace, render(t, "istio", "--target", namespace+"/orders", "--check", check)+issuer.trusted(namespace)+denied(namespace))
	e.Await(t, checkFilter, tokenFilter, "/denied")
	expect(t, http.StatusUnauthorized, url, "x-api-key", "stranger", "authorization", "Bearer forged")
	expect(t, http.StatusForbidden, url+"/denied", "x-api-key", "stranger")
	if asked := e.Stat(t, "ext_authz.ok"); asked != 2 {
		t.Errorf("asked %d times about what Istio refused, want 2", asked)
	}
	enforced(t, 3, url, "x-api-key", "a")
	enforced(t, 3, url, "x-api-key", "b")
	if ok, denied := e.Stat(t, "ext_authz.ok"), e.Stat(t, "ext_authz.denied"); ok != 2+6 || denied != 2 {
		t.Errorf("the filter let pass %d and refused %d", ok, denied)
	}
	m.uncounted(t, sidecar, e, url, "ext_authz.failure_mode_allowed")
}

// uncounted ends the sidecar: requests pass, by the filter's failure mode.
func (m *mesh) uncounted(t *testing.T, sidecar *world.Pod, e *istio.Envoy, url, stat string) {
	t.Helper()
	sidecar.Sidecar.Kill()
	expect(t, http.StatusOK, url, "x-api-key", "a")
	if e.Stat(t, stat) == 0 {
		t.Error("it passed, but not for the sidecar's absence")
	}
}

// The EnvoyFilter as it is printed, over a unix socket: the claims of a verified token and the headers that
// the policies read reach the sidecar.
func (m *mesh) envoyFilter(t *testing.T) {
	issuer := newIssuer(t)
	socket := "unix://" + parts.SocketPath(t)
	sidecar := m.sidecar(t, "filtered", socket, "filtered/Service/orders")
	e, url := m.envoy(t, "filtered", issuer.trusted("filtered")+denied("filtered")+
		render(t, "istio-envoyfilter", "--target", "filtered/orders", "--policies", m.world.Policies, "--check", socket))
	e.Await(t, checkFilter, tokenFilter, "/denied")
	expect(t, http.StatusUnauthorized, url, "x-api-key", "a", "authorization", "Bearer forged")
	expect(t, http.StatusForbidden, url+"/denied", "x-api-key", "a")
	if e.Stat(t, "ext_authz.weir.ok") != 0 {
		t.Error("the sidecar was asked about what Istio refuses")
	}
	enforced(t, 3, url, "authorization", "Bearer "+issuer.token(t, "ann"))
	enforced(t, 3, url, "authorization", "Bearer "+issuer.token(t, "bob"), "x-api-key", "ignored")
	enforced(t, 3, url, "x-api-key", "a")
	if ok, denied := e.Stat(t, "ext_authz.weir.ok"), e.Stat(t, "ext_authz.weir.denied"); ok != 9 || denied != 3 {
		t.Errorf("the filter let pass %d and refused %d", ok, denied)
	}
	m.uncounted(t, sidecar, e, url, "ext_authz.weir.failure_mode_allowed")
}

// Two routes of one gateway, each with a limit of its own: istiod names them as the printed patches expect.
func (m *mesh) gateway(t *testing.T) {
	m.cluster.Namespace(t, "edge", nil)
	socket := "unix://" + parts.SocketPath(t)
	sidecar := m.sidecar(t, "edge", socket, "edge/HTTPRoute/orders", "edge/HTTPRoute/stock")
	port := freePort(t)
	m.cluster.Apply(t, fmt.Sprintf(gatewayManifests, port, strings.TrimPrefix(m.world.Upstream.Addr(), "127.0.0.1:")))
	m.cluster.Apply(t, render(t, "istio-envoyfilter", "--gateway", "edge/edge", "--check", socket,
		"--target", "edge/HTTPRoute/orders", "--target", "edge/HTTPRoute/stock"))
	pod := istio.Pod(t, m.cluster, "edge", "edge-0", map[string]string{"gateway.networking.k8s.io/gateway-name": "edge"})
	e := m.istiod.StartEnvoy(t, "router", pod)
	e.Await(t, checkFilter, "weir.target")
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	enforced(t, 3, url+"/orders", "x-api-key", "a")
	enforced(t, 5, url+"/stock", "x-api-key", "a")
	m.uncounted(t, sidecar, e, url+"/orders", "ext_authz.weir.failure_mode_allowed")
}

// CASE 24: a provider that is an address in the pod is unknown to the mesh, and every request is denied
// (istio#34622, #40944). The one that is printed has a ServiceEntry, so it is known; without its sidecar it
// answers what was chosen.
func (m *mesh) case24(t *testing.T) {
	t.Run("an address alone denies everything", func(t *testing.T) {
		e, url := m.envoy(t, "naive", `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: naive, namespace: naive}
spec: {selector: {matchLabels: {app: orders}}, action: CUSTOM, provider: {name: naive}, rules: [{}]}
`)
		expect(t, http.StatusForbidden, url)
		if config, err := e.Config(); err != nil || strings.Contains(config, checkFilter) {
			t.Errorf("the provider is in use after all (%v)", err)
		}
	})
	t.Run("the printed one fails as was chosen", func(t *testing.T) {
		_, url := m.envoy(t, "bank", render(t, "istio", "--target", "bank/orders", "--check", m.check, "--fail", "closed"))
		expect(t, http.StatusServiceUnavailable, url)
	})
}
