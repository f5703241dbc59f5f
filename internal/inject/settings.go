package inject

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/configfile"
	"github.com/weirproxy/weir/internal/listen"
	"github.com/weirproxy/weir/internal/log"
)

// Modes of injection.
const (
	Native = "Native" // an init container with restartPolicy Always: Kubernetes 1.29 and later
	Plain  = "Plain"  // a container among the others, for older clusters
)

// Settings are what an installation's administrator says; pods choose within them by annotations.
type Settings struct {
	// Image is the sidecar's. Required.
	Image string `yaml:"image"`
	// PullPolicy is the image's: Always, IfNotPresent or Never. Empty: Kubernetes' own default.
	PullPolicy string `yaml:"pullPolicy"`
	// Program is where the image has weir-sidecar; probes and hooks run it too.
	Program string `yaml:"program"`
	// Mode is Native or Plain.
	Mode string `yaml:"mode"`
	// Listen is where Envoy asks, unless the pod says otherwise: a socket in /run/weir or TCP on loopback.
	Listen string `yaml:"listen"`
	// User and Group run the sidecar. The socket belongs to the group, and the pod's containers are
	// given it as a supplementary one. Both 0: the cluster or the image chooses, as OpenShift demands, and the
	// sidecar listens on TCP.
	User  int64 `yaml:"user"`
	Group int64 `yaml:"group"`
	// Resources of the container, as Kubernetes' quantities; empty: none.
	Resources Resources `yaml:"resources"`
	// IdentitySecret and IdentityKey name the Secret of the identity key in the pod's namespace, which
	// the controller copies there, and its key.
	IdentitySecret string `yaml:"identitySecret"`
	IdentityKey    string `yaml:"identityKey"`
	// KafkaSecret names the Secret of the Kafka client in the pod's namespace. Empty: none is needed.
	KafkaSecret string `yaml:"kafkaSecret"`
	// Kafka is how to reach the brokers. Its files are keys of KafkaSecret: caFile: ca.crt.
	Kafka config.Kafka `yaml:"kafka"`
	// Server is which check server answers; empty: the sidecar's default.
	Server string `yaml:"server"`
	// MaxCounters bounds the sidecar's memory; 0: the sidecar's default.
	MaxCounters int `yaml:"maxCounters"`
	// MetricsAddress serves /metrics to the collector, on the pod's own address. Empty: on loopback only.
	MetricsAddress string `yaml:"metricsAddress"`
	// LogLevel holds unless the pod says otherwise; empty: the sidecar's default.
	LogLevel string `yaml:"logLevel"`
	// Grace is how long the sidecar may take to send its last reports.
	Grace time.Duration `yaml:"grace"`
	// Drain is how long a plain container stays after the pod was told to end, so that the application and
	// its proxy end before it. Native ones need none: Kubernetes ends them last.
	Drain time.Duration `yaml:"drain"`
	// ForeignTargets are namespaces whose pods may name targets of other namespaces: those of shared
	// gateways.
	ForeignTargets []string `yaml:"foreignTargets"`
}

// Resources are requests and limits.
type Resources struct {
	CPURequest    string `yaml:"cpuRequest"`
	CPULimit      string `yaml:"cpuLimit"`
	MemoryRequest string `yaml:"memoryRequest"`
	MemoryLimit   string `yaml:"memoryLimit"`
}

// DefaultSettings are what holds where an installation says nothing. Image and brokers are missing.
func DefaultSettings() Settings {
	return Settings{
		Program: "/weir-sidecar", Mode: Native, Listen: "unix://" + dirRun + "/check.sock",
		User: 65532, Group: 65532,
		Resources:      Resources{CPURequest: "50m", MemoryRequest: "48Mi", MemoryLimit: "192Mi"},
		IdentitySecret: "weir-identity", IdentityKey: "identity.key",
		Kafka:          config.DefaultSidecar().Kafka,
		MetricsAddress: "tcp://0.0.0.0:9194",
		Grace:          5 * time.Second, Drain: 15 * time.Second,
	}
}

// ReadSettings reads a file of settings over s, strictly.
func ReadSettings(file string, data []byte, s *Settings) error {
	return configfile.Decode(file, data, s)
}

var secretKey = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)

// Validate returns all that is wrong with s, joined.
func (s Settings) Validate() error {
	errs := []error{s.validateContainer(), s.validateSecrets(), s.withoutReferences()}
	if len(s.Kafka.Brokers) == 0 {
		errs = append(errs, errors.New("kafka.brokers: none given; name one at least, kafka.example:9092"))
	}
	addr, err := listens(s.Listen)
	if err = errors.Join(err, s.reaches(addr)); err != nil {
		errs = append(errs, fmt.Errorf("listen: %w", err))
	}
	if samePort(s.MetricsAddress, config.DefaultSidecar().Admin.Address) {
		errs = append(errs, fmt.Errorf("metricsAddress: %q is the port of the sidecar's admin server; name another", s.MetricsAddress))
	}
	errs = append(errs, cli.Admin(config.Admin{Address: config.DefaultSidecar().Admin.Address, MetricsAddress: s.MetricsAddress}))
	if _, err := log.ParseLevel(orElse(s.LogLevel, "info")); err != nil {
		errs = append(errs, fmt.Errorf("logLevel: %w", err))
	}
	if s.Grace < time.Second || s.Grace > time.Hour || s.Drain < 0 || s.Drain > time.Hour {
		errs = append(errs, fmt.Errorf("grace %v, drain %v: grace is 1s to 1h, drain 0s to 1h", s.Grace, s.Drain))
	}
	return errors.Join(errs...)
}

func (s Settings) validateContainer() error {
	var errs []error
	if s.Image == "" || strings.ContainsAny(s.Image, " \t\n") {
		errs = append(errs, fmt.Errorf("image: %q is none; name weir-sidecar's image, best by digest", s.Image))
	}
	if s.Mode != Native && s.Mode != Plain {
		errs = append(errs, fmt.Errorf("mode: %q is neither %s nor %s", s.Mode, Native, Plain))
	}
	switch s.PullPolicy {
	case "", "Always", "IfNotPresent", "Never":
	default:
		errs = append(errs, fmt.Errorf("pullPolicy: %q is none; there are Always, IfNotPresent and Never", s.PullPolicy))
	}
	if !path.IsAbs(s.Program) {
		errs = append(errs, fmt.Errorf("program: %q: give the absolute path within the image", s.Program))
	}
	if s.User < 0 || s.Group < 0 || s.User > 1<<31-1 || s.Group > 1<<31-1 || (s.User == 0) != (s.Group == 0) {
		errs = append(errs, fmt.Errorf("user %d, group %d: each is above 0, since the sidecar does not run as root, or both are 0, and the cluster chooses", s.User, s.Group))
	}
	if _, err := s.Resources.requirements(); err != nil {
		errs = append(errs, fmt.Errorf("resources: %w", err))
	}
	return errors.Join(errs...)
}

func (s Settings) validateSecrets() error {
	var errs []error
	if s.IdentitySecret == "" || !secretKey.MatchString(s.IdentityKey) {
		errs = append(errs, fmt.Errorf("identitySecret %q, identityKey %q: name the Secret and its key", s.IdentitySecret, s.IdentityKey))
	}
	for field, key := range map[string]string{
		"kafka.tls.caFile": s.Kafka.TLS.CAFile, "kafka.tls.certFile": s.Kafka.TLS.CertFile,
		"kafka.tls.keyFile": s.Kafka.TLS.KeyFile, "kafka.sasl.passwordFile": s.Kafka.SASL.PasswordFile,
	} {
		switch {
		case key == "":
		case !secretKey.MatchString(key):
			errs = append(errs, fmt.Errorf("%s: %q: here this is a key of kafkaSecret, such as ca.crt", field, key))
		case s.KafkaSecret == "":
			errs = append(errs, fmt.Errorf("%s: %q is a key of kafkaSecret, which is not set", field, key))
		}
	}
	return errors.Join(errs...)
}

// withoutReferences refuses $(VAR), which Kubernetes would replace in arguments.
func (s Settings) withoutReferences() error {
	for _, f := range configfile.Fields(&s) {
		for _, text := range texts(f.Value) {
			if strings.Contains(text, "$(") || strings.Contains(text, "$$") {
				return fmt.Errorf("%s: %q: a $( or $$ would be replaced by Kubernetes; leave it out", f.Path, text)
			}
		}
	}
	return nil
}

// texts are the strings that a setting holds.
func texts(v reflect.Value) []string {
	switch x := v.Interface().(type) {
	case string:
		return []string{x}
	case []string:
		return x
	default:
		return nil
	}
}

// listens is the address that the sidecar is told: within the shared volume or on loopback, with the mode
// that lets the group in. What is wrong with it is so whatever the settings.
func listens(addr string) (string, error) {
	a, err := listen.Parse(addr)
	switch {
	case err != nil:
		return "", err
	case strings.Contains(addr, "$"):
		return "", fmt.Errorf("%q: a $ may be replaced by Kubernetes; leave it out", addr)
	case a.Network == "unix" && path.Dir(a.Path) != dirRun:
		return "", fmt.Errorf("%q: a socket is in %s, the volume that is shared with the proxy", addr, dirRun)
	case a.Network == "unix":
		return "unix://" + a.Path + "?mode=0660", nil
	case !a.Loopback():
		return "", fmt.Errorf("%q: whoever reaches it may use up quotas; listen on 127.0.0.1 or on a socket in %s", addr, dirRun)
	case strings.HasSuffix(a.Path, ":0"):
		return "", fmt.Errorf("%q: name a port, which Envoy is configured with", addr)
	}
	if admin := config.DefaultSidecar().Admin.Address; samePort(addr, admin) {
		return "", fmt.Errorf("%q: the sidecar has that port itself, for its admin server (%s); name another", addr, admin)
	}
	return addr, nil
}

func samePort(a, b string) bool {
	x, isX := tcpPort(a)
	y, isY := tcpPort(b)
	return isX && isY && x == y
}

// reaches is what stands against an address in these settings, which change without the pod.
func (s Settings) reaches(addr string) error {
	if samePort(addr, s.MetricsAddress) {
		return fmt.Errorf("%q: the sidecar has that port itself, for its metrics (metricsAddress %s); name another", addr, s.MetricsAddress)
	}
	if s.User == 0 && strings.HasPrefix(addr, "unix:") {
		return fmt.Errorf("%q: with user and group left to the cluster no group is known that may use a socket; listen on tcp://127.0.0.1:PORT", addr)
	}
	return nil
}

// quantity is q parsed; an empty one is nil.
func quantity(field, q string) (*resource.Quantity, error) {
	if q == "" {
		return nil, nil
	}
	parsed, err := resource.ParseQuantity(q)
	if err != nil || parsed.Sign() <= 0 {
		return nil, fmt.Errorf("%s: %q is no quantity above 0, such as 50m of CPU or 64Mi of memory", field, q)
	}
	return &parsed, nil
}

func orElse[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
