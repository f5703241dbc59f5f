package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// title says what the objects below are and how to make them again.
func (m *model) title(what string) string {
	names := make([]string, len(m.targets))
	for i, t := range m.targets {
		names[i] = t.String()
	}
	return fmt.Sprintf("%s that asks weir's sidecar before each request to %s.", what, strings.Join(names, ", "))
}

// notes are the reasons beside the fields, by the end of a field's path (see annotate).
func (m *model) notes() map[string]string {
	notes := map[string]string{
		// Envoy's own fields.
		"HttpConnectionManager/use_remote_address":      "the peer is who connects, whatever X-Forwarded-For says",
		"HttpConnectionManager/normalize_path":          "so that the service sees the path that was matched",
		"HttpConnectionManager/request_headers_timeout": "unset, slow headers may take for ever",
		"HttpConnectionManager/http_filters":            "The check comes after what authenticates (jwt_authn, rbac, …: put those above it), so that it sees who is calling and strangers use up nobody's quota, and before the router, so that what is refused does not reach the service.",
		"json_format/weir":                              "which limit refused, or would have",
		"virtual_hosts/typed_per_filter_config":         m.namedNote(),
		"admin/address":                                 "Loopback only: whoever reaches it can stop this Envoy.",
		"weir/typed_extension_protocol_options":         "gRPC is HTTP/2.",
		"weir/connect_timeout":                          "as short as a check's: a sidecar that is away is known at once",
		"weir/circuit_breakers":                         "Checks in flight. The defaults, 1024, are a busy Envoy's; what is above counts as failed checks.",
		"weir/load_assignment":                          m.addressNote(),
		"service/connect_timeout":                       "Envoy's default is 5 s",
		"service/load_assignment":                       "Your service.",
		"route/timeout":                                 "your service's; Envoy's default is 15 s",

		// The filter.
		"ExtAuthz/grpc_service":                  "Each request waits for the answer, well under 1 ms. The time-out ends the wait for a sidecar that stands still; it is above 100 ms, for which the kernel may hold a throttled one. Unset, it is 200 ms in Envoy.",
		"ExtAuthz/failure_mode_allow":            m.failureNote(),
		"ExtAuthz/failure_mode_allow_header_add": "the service can tell requests that nobody checked",
		"ExtAuthz/status_on_error":               "Envoy's own is 403, which clients take for a verdict on them",
		"ExtAuthz/encode_raw_headers":            "values of any bytes; else two may become one client",
		"ExtAuthz/stat_prefix":                   "cluster.*.ext_authz.weir.{ok,denied,error,…}",
		"ExtAuthz/allowed_headers":               "What the policies read, and what the form of a refusal depends on; no other header leaves Envoy. What is not listed does not exist for weir: render anew before a policy reads another.",
		"ExtAuthz/metadata_context_namespaces":   "The claims of verified tokens, for the client source JWTClaim.",
	}
	for path, note := range m.istioNotes() {
		notes[path] = note
	}
	for path, note := range m.gatewayNotes() {
		notes[path] = note
	}
	return notes
}

func (m *model) failureNote() string {
	const behind = " While only what is behind the sidecar is away, the policies decide."
	if m.Needs.FailClosed {
		return "While the sidecar itself is away requests are refused, as a policy's failure.mode Deny or --fail closed asks." + behind
	}
	return "While the sidecar itself is away requests pass, uncounted. A policy's failure.mode Deny or --fail closed would refuse them." + behind
}

func (m *model) addressNote() string {
	if m.Check.Network == "unix" {
		return "The sidecar's --listen: a socket in a volume that both containers mount, and whose group Envoy is in."
	}
	return "The sidecar's --listen: open to every container of the pod."
}

func (m *model) namedNote() string {
	return "This Envoy serves many targets, so each check names its own. The sidecar is given the same names (--target, repeated); another one is \"no policy\": allowed, and counted."
}

// milliseconds is a duration as the Gateway API writes it.
func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

// seconds is a duration as protobuf's JSON writes it, which Istio reads.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }
