package parts

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"text/template"
	"time"
)

//go:embed envoy.yaml.tmpl
var envoyTemplate string

// envoyTmpl quotes as JSON, which is YAML as well.
var envoyTmpl = template.Must(template.New("envoy.yaml").Funcs(template.FuncMap{
	"quote": func(v any) (string, error) {
		text, err := json.Marshal(v)
		return string(text), err
	},
	"seconds": func(d time.Duration) string { return fmt.Sprintf("%.6fs", d.Seconds()) },
	"address": envoyAddress,
}).Parse(envoyTemplate))

// envoyConfig returns a complete static configuration.
func envoyConfig(listener, admin int, opts EnvoyOpts) ([]byte, error) {
	if opts.Authz != nil {
		withDefaults := *opts.Authz
		if withDefaults.Timeout == 0 {
			withDefaults.Timeout = 200 * time.Millisecond
		}
		opts.Authz = &withDefaults
	}
	var b bytes.Buffer
	err := envoyTmpl.Execute(&b, struct {
		EnvoyOpts
		Listener, Admin string
	}{opts, loopback(listener), loopback(admin)})
	return b.Bytes(), err
}

// envoyAddress renders unix:///path or host:port as an Envoy address.
func envoyAddress(address string) (string, error) {
	if path, isUnix := strings.CutPrefix(address, "unix://"); isUnix {
		return fmt.Sprintf("{pipe: {path: %q}}", path), nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("{socket_address: {address: %q, port_value: %d}}", host, number), nil
}
