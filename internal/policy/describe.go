package policy

import (
	"fmt"
	"strings"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// OtherMethod stands in counters for methods that are neither common nor named by the limit, so that
// made-up methods do not make counters.
const OtherMethod = "*"

// MethodLabel returns the method as the limit's counters name it.
func (l *Limit) MethodLabel(method string) string {
	switch method {
	case "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE":
		return method
	}
	if l.When.names(method) {
		return method
	}
	return OtherMethod
}

// Describe says in words what the limit counts apart, such as "each Client and Endpoint", or "the
// whole target".
func (l *Limit) Describe() string {
	if len(l.Dimensions) == 0 {
		return "the whole target"
	}
	words := make([]string, len(l.Dimensions))
	for i := range l.Dimensions {
		words[i] = l.Dimensions[i].String()
	}
	return "each " + strings.Join(words, " and ")
}

// String returns the dimension as a policy writes it, without options.
func (d *Dimension) String() string {
	switch d.Kind {
	case ByClient:
		return "Client"
	case ByEndpoint:
		return "Endpoint"
	case ByMethod:
		return "Method"
	case ByHost:
		return "Host"
	default:
		return "Header:" + d.Name
	}
}

// DescribeDimension says in words which counter of a limit it is. Secrets show as the beginning of
// their keyed hash; other values are quoted, so that any bytes can be printed.
func DescribeDimension(d *wirev1.Dimension) string {
	switch d.Kind {
	case wirev1.DimClientMissing:
		return "client unknown"
	case wirev1.DimHeaderMissing:
		return "header " + d.Name + " missing"
	case wirev1.DimOverflow:
		return "overflow of the limit"
	}
	noun, hashed := dimensionNoun(d.Kind)
	if d.Name != "" {
		noun += " " + d.Name
	}
	if hashed {
		return fmt.Sprintf("%s (hash %.8s)", noun, d.Value)
	}
	return fmt.Sprintf("%s %q", noun, d.Value)
}

func dimensionNoun(k wirev1.DimensionKind) (noun string, hashed bool) {
	switch k {
	case wirev1.DimClientPrincipal, wirev1.DimClientPrincipalHashed:
		return "client principal", k == wirev1.DimClientPrincipalHashed
	case wirev1.DimClientJWTClaim, wirev1.DimClientJWTClaimHashed:
		return "client claim", k == wirev1.DimClientJWTClaimHashed
	case wirev1.DimClientHeader, wirev1.DimClientHeaderHashed:
		return "client header", k == wirev1.DimClientHeaderHashed
	case wirev1.DimClientRemoteAddress:
		return "client address", false
	case wirev1.DimEndpoint:
		return "endpoint", false
	case wirev1.DimMethod, wirev1.DimMethodHashed:
		return "method", k == wirev1.DimMethodHashed
	case wirev1.DimHost, wirev1.DimHostHashed:
		return "host", k == wirev1.DimHostHashed
	case wirev1.DimHeader, wirev1.DimHeaderHashed:
		return "header", k == wirev1.DimHeaderHashed
	default:
		return "unknown", true
	}
}
