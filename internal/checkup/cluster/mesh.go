package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/internal/checkup"
)

func configMaps() kind            { return of("", "v1", "configmaps") }
func authorizationPolicies() kind { return of("security.istio.io", "v1", "authorizationpolicies") }
func serviceEntries() kind        { return of("networking.istio.io", "v1", "serviceentries") }
func envoyFilters() kind          { return of("networking.istio.io", "v1alpha3", "envoyfilters") }

// The ConfigMap of the mesh's configuration, and its key.
const (
	meshConfigMap = "istio"
	meshKey       = "mesh"
)

// meshConfig is what is looked at of Istio's mesh configuration.
type meshConfig struct {
	configMap string // its name

	ExtensionProviders []provider `json:"extensionProviders"`
}

// provider is an authorizer; Grpc nil: it is of another kind.
type provider struct {
	Name string `json:"name"`
	Grpc *struct {
		Service string `json:"service"`
		Port    uint32 `json:"port"`
		Timeout string `json:"timeout"`
	} `json:"envoyExtAuthzGrpc"`
}

type named struct {
	Name string `json:"name"`
}

// authorization is what is looked at of an AuthorizationPolicy.
type authorization struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Action   string `json:"action"`
		Provider named  `json:"provider"`
	} `json:"spec"`
}

// serviceEntry is what is looked at of one.
type serviceEntry struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Hosts    []string `json:"hosts"`
		ExportTo []string `json:"exportTo"`
		Ports    []struct {
			Number   uint32 `json:"number"`
			Protocol string `json:"protocol"`
		} `json:"ports"`
	} `json:"spec"`
}

// istio is the check mesh.istio.
func (c *Checks) istio(ctx context.Context) []checkup.Finding {
	meshes, out := c.meshes(ctx)
	if len(meshes) == 0 {
		return out
	}
	authorizations, err := objects[authorization](ctx, c.kubernetes, authorizationPolicies(), "", "")
	if err != nil && !apierrors.IsNotFound(err) {
		return append(out, cannot("list", authorizationPolicies(), "", err)...)
	}
	entries, err := objects[serviceEntry](ctx, c.kubernetes, serviceEntries(), "", "")
	if err != nil && !apierrors.IsNotFound(err) {
		return append(out, cannot("list", serviceEntries(), "", err)...)
	}
	filters, err := objects[envoyFilter](ctx, c.kubernetes, envoyFilters(), "", "")
	if err != nil && !apierrors.IsNotFound(err) {
		return append(out, cannot("list", envoyFilters(), "", err)...)
	}
	return append(out, judgeIstio(meshes, authorizations, entries, filters)...)
}

// revisionLabel is what istiod's pods say of which revision they are; the default's ConfigMap has no suffix.
const revisionLabel = "istio.io/rev"

// meshes are the configurations of the mesh: Istio's, and that of each revision which runs. Without any, the findings say why.
func (c *Checks) meshes(ctx context.Context) (out []meshConfig, findings []checkup.Finding) {
	istiods, listing := objects[metav1.PartialObjectMetadata](ctx, c.kubernetes, pods(), c.cfg.IstioNamespace, "app=istiod")
	configMapNames := []string{meshConfigMap}
	for i := range istiods {
		if r := istiods[i].Labels[revisionLabel]; r != "" && r != "default" && !slices.Contains(configMapNames, meshConfigMap+"-"+r) {
			configMapNames = append(configMapNames, meshConfigMap+"-"+r)
		}
	}
	for _, name := range configMapNames {
		m, err := object[corev1.ConfigMap](ctx, c.kubernetes, configMaps(), c.cfg.IstioNamespace, name)
		mesh := meshConfig{configMap: name}
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsForbidden(err) && name != meshConfigMap:
			findings = append(findings, checkup.Deny("let it get the ConfigMap "+name, "this user may not get the configuration of a revision of Istio, ConfigMap %s in namespace %s", name, c.cfg.IstioNamespace))
		case err != nil:
			findings = append(findings, cannot("get", configMaps(), c.cfg.IstioNamespace, err)...)
		default:
			if err := yaml.Unmarshal([]byte(m.Data[meshKey]), &mesh); err != nil {
				findings = append(findings, checkup.Fail("correct it", "ConfigMap %s of namespace %s: %s: %v", name, c.cfg.IstioNamespace, meshKey, err))
				continue
			}
			out = append(out, mesh)
		}
	}
	switch {
	case len(out) > 0 || len(findings) > 0:
	case listing != nil:
		findings = cannot("list", pods(), c.cfg.IstioNamespace, listing)
	default:
		findings = []checkup.Finding{checkup.Skip("", "Istio is not installed in namespace %s, of no revision", c.cfg.IstioNamespace)}
	}
	return out, findings
}

// judgeIstio finds providers that are named and not there, or there and not reachable: then Istio refuses every request; and
// filters that ask too early.
func judgeIstio(meshes []meshConfig, authorizations []authorization, entries []serviceEntry, filters []envoyFilter) []checkup.Finding {
	var out []checkup.Finding
	users := map[string][]string{}
	for _, a := range authorizations {
		if a.Spec.Action == "CUSTOM" {
			users[a.Spec.Provider.Name] = append(users[a.Spec.Provider.Name], a.Namespace+"/"+a.Name)
		}
	}
	used := 0
	for _, name := range sorted(users) {
		found, weirs := judgeProviders(name, users[name], meshes, entries)
		out = append(out, found...)
		if weirs {
			used++
		}
	}
	early, asking := judgeFilters(filters)
	if used == 0 && asking == 0 {
		return checkup.OrOkay(append(out, early...), "no AuthorizationPolicy and no EnvoyFilter asks weir")
	}
	return checkup.OrOkay(append(out, early...), "%s and %s of weir's: each provider is declared and has a ServiceEntry, each filter comes just before the router",
		checkup.Many(used, "provider"), checkup.Many(asking, "EnvoyFilter"))
}

// judgeProviders holds the provider that AuthorizationPolicies name against each revision's configuration.
func judgeProviders(name string, users []string, meshes []meshConfig, entries []serviceEntry) (out []checkup.Finding, isWeirs bool) {
	const declare = "declare it in the mesh's configuration: weir render istio --mesh-config; or delete the AuthorizationPolicy"
	var lacking []string
	judged := map[string]bool{} // findings of revisions that are alike are said once
	for _, m := range meshes {
		i := slices.IndexFunc(m.ExtensionProviders, func(p provider) bool { return p.Name == name })
		if i < 0 {
			lacking = append(lacking, m.configMap)
			continue
		}
		p := m.ExtensionProviders[i]
		if !weirs(p) {
			continue
		}
		isWeirs = true
		for _, f := range judgeProvider(p, entries) {
			if !judged[f.Text] {
				judged[f.Text] = true
				out = append(out, f)
			}
		}
	}
	switch {
	case len(lacking) == 0:
	case len(lacking) == len(meshes):
		out = append(out, checkup.Fail(declare, "AuthorizationPolicy %s names the provider %q, which the mesh's configuration does not have: every request is refused", names(users), name))
	default:
		out = append(out, checkup.Warn(declare, "AuthorizationPolicy %s names the provider %q, which the ConfigMap %s does not have: pods of that revision refuse every request", names(users), name, names(lacking)))
	}
	return out, isWeirs
}

func sorted(m map[string][]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// weirs reports whether a provider is weir's: by its name or by the sidecar's, as weir render writes them, or because it
// is on loopback, where nothing else of a pod's is.
func weirs(p provider) bool {
	return p.Grpc != nil && (strings.HasPrefix(p.Name, "weir") || strings.HasSuffix(p.Grpc.Service, ".weir.internal") || loopback(p.Grpc.Service))
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

const renderIstio = "weir render istio --target NAMESPACE/NAME prints the ServiceEntry and, with --mesh-config, the provider"

func judgeProvider(p provider, entries []serviceEntry) []checkup.Finding {
	var out []checkup.Finding
	namespace, host, qualified := strings.Cut(p.Grpc.Service, "/")
	if !qualified {
		namespace, host = "", p.Grpc.Service
	}
	switch {
	case loopback(host):
		out = append(out, checkup.Fail(renderIstio, "provider %q is at %s, which the mesh does not know: every request is refused; it needs a ServiceEntry's host", p.Name, host))
	case !strings.HasSuffix(host, ".svc") && !strings.Contains(host, ".svc.") && !entered(entries, namespace, host, p.Grpc.Port):
		out = append(out, checkup.Fail(renderIstio, "provider %q is at %s port %d, which no ServiceEntry has: every request is refused", p.Name, p.Grpc.Service, p.Grpc.Port))
	}
	if p.Grpc.Timeout == "" {
		out = append(out, checkup.Warn("give it one, as weir render istio --mesh-config prints it", "provider %q has no time-out: Istio waits 600 s for a sidecar that stands still", p.Name))
	}
	return out
}

// entered reports whether a ServiceEntry has the host and the port; namespace "" stands for any.
func entered(entries []serviceEntry, namespace, host string, port uint32) bool {
	return slices.ContainsFunc(entries, func(e serviceEntry) bool {
		if namespace != "" && e.Namespace != namespace || !slices.Contains(e.Spec.Hosts, host) {
			return false
		}
		for _, p := range e.Spec.Ports {
			if p.Number == port {
				return true
			}
		}
		return false
	})
}

// envoyFilter is what is looked at of one.
type envoyFilter struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		ConfigPatches []filterPatch `json:"configPatches"`
	} `json:"spec"`
}

type filterPatch struct {
	ApplyTo string `json:"applyTo"`
	Match   struct {
		Listener struct {
			FilterChain struct {
				Filter struct {
					SubFilter named `json:"subFilter"`
				} `json:"filter"`
			} `json:"filterChain"`
		} `json:"listener"`
	} `json:"match"`
	Patch struct {
		Operation string `json:"operation"`
		Value     struct {
			Name        string `json:"name"`
			TypedConfig struct {
				GRPCService struct {
					EnvoyGRPC struct {
						Cluster string `json:"cluster_name"`
					} `json:"envoy_grpc"`
				} `json:"grpc_service"`
			} `json:"typed_config"`
		} `json:"value"`
	} `json:"patch"`
}

// Names in what weir render istio-envoyfilter prints.
const (
	authzFilter  = "envoy.filters.http.ext_authz"
	authzCluster = "weir"
	routerFilter = "envoy.filters.http.router"
)

// judgeFilters finds EnvoyFilters that put weir's check elsewhere than just before the router, and counts weir's.
func judgeFilters(filters []envoyFilter) (out []checkup.Finding, asking int) {
	for _, f := range filters {
		for _, p := range f.Spec.ConfigPatches {
			v := p.Patch.Value
			if p.ApplyTo != "HTTP_FILTER" || v.Name != authzFilter || v.TypedConfig.GRPCService.EnvoyGRPC.Cluster != authzCluster {
				continue
			}
			asking++
			if at := p.Match.Listener.FilterChain.Filter.SubFilter.Name; p.Patch.Operation != "INSERT_BEFORE" || at != routerFilter {
				out = append(out, checkup.Warn("weir render istio-envoyfilter prints it", "EnvoyFilter %s/%s puts weir's check elsewhere than just before the router (%s %s): whoever is not authenticated may use up a client's quota", f.Namespace, f.Name, p.Patch.Operation, at))
			}
		}
	}
	return out, asking
}

func securityPolicies() kind { return of("gateway.envoyproxy.io", "v1alpha1", "securitypolicies") }
func backends() kind         { return of("gateway.envoyproxy.io", "v1alpha1", "backends") }

// targetExtension is the context extension by which weir's checks name their target.
const targetExtension = "weir.target"

// securityPolicy is what is looked at of one.
type securityPolicy struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		ExtAuth struct {
			GRPC struct {
				BackendRefs []struct {
					Kind      string `json:"kind"`
					Name      string `json:"name"`
					Namespace string `json:"namespace"`
				} `json:"backendRefs"`
			} `json:"grpc"`
			ContextExtensions []named `json:"contextExtensions"`
		} `json:"extAuth"`
	} `json:"spec"`
	Status struct {
		Ancestors []struct {
			Conditions []condition `json:"conditions"`
		} `json:"ancestors"`
	} `json:"status"`
}

// backend is what is looked at of one.
type backend struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// envoyGateway is the check mesh.envoy-gateway.
func (c *Checks) envoyGateway(ctx context.Context) []checkup.Finding {
	policies, err := objects[securityPolicy](ctx, c.kubernetes, securityPolicies(), "", "")
	switch {
	case apierrors.IsNotFound(err):
		return []checkup.Finding{checkup.Skip("", "Envoy Gateway is not installed")}
	case err != nil:
		return cannot("list", securityPolicies(), "", err)
	}
	there, err := objects[backend](ctx, c.kubernetes, backends(), "", "")
	if err != nil && !apierrors.IsNotFound(err) {
		return cannot("list", backends(), "", err)
	}
	return judgeGateway(policies, there)
}

func judgeGateway(policies []securityPolicy, there []backend) []checkup.Finding {
	var out []checkup.Finding
	used := 0
	for i := range policies {
		p := &policies[i]
		if !slices.Contains(p.Spec.ExtAuth.ContextExtensions, named{targetExtension}) {
			continue
		}
		used++
		for _, a := range p.Status.Ancestors {
			if bad := lacking(a.Conditions, "Accepted"); bad != nil {
				out = append(out, checkup.Fail("weir render envoy-gateway prints what Envoy Gateway takes", "SecurityPolicy %s/%s is not accepted: %s: %s", p.Namespace, p.Name, bad.Reason, bad.Message))
			}
		}
		for _, ref := range p.Spec.ExtAuth.GRPC.BackendRefs {
			if ref.Kind == "Backend" {
				out = append(out, judgeBackend(p, orElse(ref.Namespace, p.Namespace), ref.Name, there)...)
			}
		}
	}
	return checkup.OrOkay(out, "%s of weir's, with their Backends", checkup.Many(used, "SecurityPolicy"))
}

func judgeBackend(p *securityPolicy, namespace, name string, there []backend) []checkup.Finding {
	i := slices.IndexFunc(there, func(b backend) bool { return b.Namespace == namespace && b.Name == name })
	asks := fmt.Sprintf("SecurityPolicy %s/%s asks Backend %s/%s", p.Namespace, p.Name, namespace, name)
	if i < 0 {
		return []checkup.Finding{checkup.Fail("weir render envoy-gateway prints it", "%s, which is not there", asks)}
	}
	if bad := lacking(there[i].Status.Conditions, "Accepted"); bad != nil {
		return []checkup.Finding{checkup.Fail("allow Backends in Envoy Gateway's own configuration: extensionApis.enableBackend", "%s, which is not accepted: %s: %s", asks, bad.Reason, bad.Message)}
	}
	return nil
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
