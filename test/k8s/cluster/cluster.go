package cluster

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const assetsEnv = "KUBEBUILDER_ASSETS"

// Options of a cluster; the zero value is one without any definition.
type Options struct {
	// CRDs are files and directories with CustomResourceDefinitions to install.
	CRDs []string
	// APIServer are more flags of kube-apiserver, without dashes.
	APIServer map[string]string
}

// Cluster is a kube-apiserver with what a test asks of it.
type Cluster struct {
	// Client acts as an administrator, and knows the kinds of client-go's scheme; others as
	// unstructured.
	Client client.Client
	// Config is the administrator's, for clients of one's own; copy it before a change.
	Config *rest.Config
	// Kubeconfig is a file for programs that act as an administrator.
	Kubeconfig string

	assets string
	home   string
	env    *envtest.Environment

	mu        sync.Mutex
	routes    map[string]string    // namespace/name of a Service: host:port
	addresses map[types.UID]string // of pods
}

// Start runs kube-apiserver and etcd until the test ends. It skips the test without KUBEBUILDER_ASSETS.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	assets := os.Getenv(assetsEnv)
	if assets == "" {
		t.Skip(assetsEnv + " is not set: make test-k8s sets it")
	}
	c := &Cluster{assets: assets, home: t.TempDir(), routes: make(map[string]string), addresses: make(map[types.UID]string)}
	c.env = &envtest.Environment{
		CRDDirectoryPaths: o.CRDs, ErrorIfCRDPathMissing: true, BinaryAssetsDirectory: assets,
	}
	flags := c.env.ControlPlane.GetAPIServer().Configure()
	flags.Set("egress-selector-config-file", c.startEgress(t))
	for name, value := range o.APIServer {
		flags.Set(name, value)
	}
	config, err := c.env.Start()
	t.Cleanup(func() {
		if err := c.env.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Config = config
	admin, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock() // the proxy serves already
	c.Client = admin
	c.mu.Unlock()
	c.Kubeconfig = c.KubeconfigFor(t, "tester", "system:masters")
	return c
}

// KubeconfigFor writes a file by which a program acts as a user of these groups, and returns its path.
func (c *Cluster) KubeconfigFor(t testing.TB, user string, groups ...string) string {
	t.Helper()
	added, err := c.env.AddUser(envtest.User{Name: user, Groups: groups}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := added.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
