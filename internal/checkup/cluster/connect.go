package cluster

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ErrNone says that no cluster is named.
var ErrNone = errors.New("no cluster is named")

// Requests a second, and at once: kube-apiserver's own priority and fairness protects it.
const (
	queries = 400
	burst   = 800
)

// Connect returns a client of the cluster that a kubeconfig names, or that this pod is in. A context without a file is
// one of $KUBECONFIG's or else of ~/.kube/config's. It does not ask the server anything. ErrNone where neither is named,
// $KUBECONFIG is not set and this is no pod.
func Connect(file, context string) (dynamic.Interface, error) {
	conf, err := restConfig(file, context)
	if err != nil {
		return nil, err // and a nil interface, which says that there is no cluster
	}
	conf.UserAgent = "weir-check"
	conf.QPS, conf.Burst = queries, burst
	return dynamic.NewForConfig(conf)
}

func restConfig(file, context string) (*rest.Config, error) {
	if file == "" && context == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		conf, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, ErrNone
		}
		return conf, err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	conf, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return conf, nil
}
