package story_test

import (
	"net/http"
	"strings"
	"testing"
)

// Each line is what a platform team does, or sees.
func TestStory(t *testing.T) {
	s := start(t)

	s.chapter("helm install", func() {
		s.install()
		s.kubectl("-n", system, "rollout", "status", "statefulset/weir-aggregator", "--timeout=90s")
		s.kubectl("-n", system, "rollout", "status", "deployment/weir-controller", "--timeout=90s")
	})

	s.chapter("a service in a labelled namespace gets its sidecars", func() {
		s.apply(namespace, service, deployment)
		s.kubectl("-n", "shop", "rollout", "status", "deployment/orders", "--timeout=90s")
		for _, p := range s.pods() {
			if sidecarOf(p) == nil {
				t.Errorf("%s has no sidecar", p.Name)
			}
		}
	})

	s.chapter("kubectl apply a policy, and see that every pod enforces it", func() {
		s.apply(policy)
		s.comes("condition=Programmed")
		s.shows("kubectl get qpol", s.kubectl("-n", "shop", "get", "qpol"), "Service/orders", "each-client", "Accepted", "Programmed", "3/3")
		if st := s.status(); st.ObservedGeneration != 1 || st.Pods.OldestGeneration != 1 || st.Pods.Ratio != "3/3" {
			t.Errorf("status: %+v", st)
		}
	})

	s.chapter("the limit holds over all pods together; one of their Envoys is configured by istiod", func() {
		s.envoys()
		s.passes("ann", 30)
		s.passes("bob", 30)
		refused := s.ask(0, "ann")
		s.shows("a refusal through Istio's Envoy", refused.header.Get("Retry-After")+" "+refused.body, "each-client", "429")
	})

	s.chapter("a raised limit is in force, what was counted stays", func() {
		s.limit(50)
		s.comes("jsonpath={.status.observedGeneration}=2")
		s.comes("condition=Programmed")
		s.until("every pod is said to enforce generation 2", func() bool {
			st := s.status()
			return st.Pods.OldestGeneration == 2 && st.Pods.Enforcing == 3
		})
		s.passes("ann", 50)
	})

	// CASE 25: status says enforced when it is not (kuadrant-operator#406, gateway#10025).
	s.chapter("case 25: a pod that does not answer is not said to enforce", func() {
		lagging := s.pods()[2]
		process := s.kubelet.Process(t, &lagging, "weir-sidecar")
		s.must(process.Pause())
		s.comes("condition=Programmed=False")
		if st := s.status(); st.Pods.Ratio != "2/3" || len(st.Pods.Lagging) != 1 || st.Pods.Lagging[0] != lagging.Name {
			t.Errorf("status: %+v", st.Pods)
		}
		s.must(process.Resume())
		s.comes("condition=Programmed")
	})

	s.chapter("a pod that is replaced is counted once it enforces", func() {
		s.replace()
		s.until("3/3 again", func() bool { return s.status().Pods.Ratio == "3/3" })
	})

	s.chapter("an invalid edit is refused by kube-apiserver or shown, and the last good one stays in force", func() {
		out, err := s.cluster.TryKubectl(t, "-n", "shop", "patch", "qpol", "orders", "--type=json",
			`--patch=[{"op": "replace", "path": "/spec/limits/0/rates/0/window", "value": "1x"}]`)
		if err == nil {
			t.Error("a window of 1x was accepted")
		}
		s.shows("the refusal", out, "window")
		if got := s.ask(0, "ann").status; got != http.StatusTooManyRequests {
			t.Errorf("ann got %d, want 429", got)
		}
	})

	s.chapter("helm test: weir check finds nothing wrong", func() {
		s.helm("test", "weir", "--namespace", system, "--logs=false", "--timeout", "90s")
	})

	s.chapter("controllers are replaced one by one, and policies are edited meanwhile", func() {
		before := s.holder()
		s.kubectl("-n", system, "rollout", "restart", "deployment/weir-controller")
		s.limit(55)
		s.kubectl("-n", system, "rollout", "status", "deployment/weir-controller", "--timeout=90s")
		s.comes("jsonpath={.status.pods.oldestGeneration}=3")
		s.until("another controller holds the lease", func() bool { return s.holder() != before })
		s.passes("ann", 55)
	})

	s.chapter("kubectl delete ends enforcement everywhere", func() {
		s.kubectl("-n", "shop", "delete", "qpol", "orders", "--timeout=60s")
		s.until("nobody is refused any more", func() bool {
			for pod := range s.fronts {
				if s.ask(pod, "ann").status != http.StatusOK {
					return false
				}
			}
			return true
		})
	})

	s.chapter("helm uninstall: services go on, policies' definition and the key stay", func() {
		s.helm("uninstall", "weir", "--namespace", system, "--wait", "--timeout", "90s")
		for pod := range s.fronts {
			if got := s.ask(pod, "ann").status; got != http.StatusOK {
				t.Errorf("pod %d answers %d", pod, got)
			}
		}
		s.shows("what stays", s.kubectl("get", "crd", "quotapolicies.weirproxy.dev", "-o", "name")+
			s.kubectl("-n", system, "get", "secret", "weir-identity", "-o", "name"), "quotapolicies", "weir-identity")
		if left := strings.TrimSpace(s.kubectl("-n", system, "get", "deployments,statefulsets,services", "-o", "name")); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	})
}
