package story_test

// What a team applies.
const (
	namespace = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {weirproxy.dev/inject: enabled}}
`
	service = `
apiVersion: v1
kind: Service
metadata: {name: orders, namespace: shop}
spec: {selector: {app: orders}, ports: [{name: http, port: 80, targetPort: 8080}]}
`
	deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec:
      containers:
      - {name: orders, image: registry.example/orders:1, ports: [{name: http, containerPort: 8080}]}
`
	policy = `
apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs:
  - {group: "", kind: Service, name: orders}
  client:
  - {source: Header, name: x-api-key}
  limits:
  - {name: each-client, counters: [Client], rates: [{limit: 30, window: 1h}]}
`
)
