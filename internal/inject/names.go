package inject

// What a pod or a namespace says, and what the injector writes.
const (
	domain = "weirproxy.dev/"

	// Label asks for injection, on a namespace or on a pod, whose word holds: enabled or disabled.
	Label = domain + "inject"
	// Enabled and Disabled are its values.
	Enabled  = "enabled"
	Disabled = "disabled"

	// AnnotationTarget names whose requests are counted, instead of the pod's owner and Services:
	// Kind/name or namespace/Kind/name, several by commas.
	AnnotationTarget = domain + "target"
	// AnnotationListen is where the sidecar listens: unix:///run/weir/NAME or tcp://127.0.0.1:PORT.
	AnnotationListen = domain + "listen"
	// AnnotationLogLevel is debug, info, warn or error.
	AnnotationLogLevel = domain + "log-level"
	// AnnotationProxy names the containers that ask (Envoy), by commas: they get the socket.
	AnnotationProxy = domain + "proxy-container"
	// The container's resources, as quantities; "none" takes a limit away.
	AnnotationCPURequest    = domain + "cpu-request"
	AnnotationCPULimit      = domain + "cpu-limit"
	AnnotationMemoryRequest = domain + "memory-request"
	AnnotationMemoryLimit   = domain + "memory-limit"

	// AnnotationRecord is the injector's own note of what it added that no name tells apart. Its
	// presence says that a template was injected.
	AnnotationRecord = domain + "injected"

	// Container is the sidecar's name.
	Container = "weir-sidecar"

	annotationDefaultContainer = "kubectl.kubernetes.io/default-container"
	annotationMirror           = "kubernetes.io/config.mirror"
)

// Volumes of the injector's.
const (
	volumeRun      = "weir-run"      // the socket, in memory, shared with the proxy
	volumeState    = "weir-state"    // last good policies, over restarts of the container
	volumeIdentity = "weir-identity" // the Secret of the identity key
	volumeKafka    = "weir-kafka"    // the Secret of the Kafka client
)

// reservedVolumes are removed where they are no longer wanted.
func reservedVolumes() []string {
	return []string{volumeRun, volumeState, volumeIdentity, volumeKafka}
}

// Where the volumes are in the sidecar.
const (
	dirRun      = "/run/weir"
	dirState    = "/var/lib/weir"
	dirIdentity = "/etc/weir/identity"
	dirKafka    = "/etc/weir/kafka"
)

// Environment of the sidecar, from the downward API.
const (
	envNamespace = "WEIR_POD_NAMESPACE"
	envName      = "WEIR_POD_NAME"
)

// proxyNames are containers known to be an Envoy, in the order of preference.
func proxyNames() []string { return []string{"istio-proxy", "envoy", "envoy-proxy"} }
