package istio_test

import "strings"

// denied has Istio itself refuse a path of a namespace.
func denied(namespace string) string {
	return strings.ReplaceAll(`
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: denied, namespace: NAMESPACE}
spec: {action: DENY, rules: [{to: [{operation: {paths: [/orders/denied]}}]}]}
---
`, "NAMESPACE", namespace)
}

// gatewayManifests are a gateway's, with its listener's port and the upstream's. The Service stands for
// the one that Istio makes of a Gateway.
const gatewayManifests = `
apiVersion: v1
kind: Service
metadata: {name: edge-istio, namespace: edge}
spec: {selector: {gateway.networking.k8s.io/gateway-name: edge}, ports: [{name: http, port: %[1]d}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: edge}
spec: {gatewayClassName: istio, listeners: [{name: http, port: %[1]d, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: orders, namespace: edge}
spec:
  parentRefs: [{name: edge}]
  rules:
  - {matches: [{path: {value: /orders}}], backendRefs: [{group: networking.istio.io, kind: Hostname, name: upstream.example, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: stock, namespace: edge}
spec:
  parentRefs: [{name: edge}]
  rules:
  - {matches: [{path: {value: /stock}}], backendRefs: [{group: networking.istio.io, kind: Hostname, name: upstream.example, port: 80}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: upstream, namespace: edge}
spec:
  hosts: [upstream.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 127.0.0.1, ports: {http: %[2]s}}]
`
