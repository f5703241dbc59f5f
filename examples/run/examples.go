package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// example is one policy, and the services that it is for.
type example struct {
	policies string // a file
	target   string // namespace/kind/name
	services []service
	pace     time.Duration // between the requests that show the quota; 0: as fast as answers come
}

// service is a program that listens on 127.0.0.1:$PORT.
type service struct {
	name    string
	command []string
}

// inEach is the same service in each language.
func inEach() []service {
	return []service{
		{"go", []string{"go", "run", "./examples/services/go"}},
		{"python", []string{"python3", "examples/services/python/main.py"}},
		{"node", []string{"node", "examples/services/node/main.mjs"}},
	}
}

// chosen is the example of these names, or one's own command.
func chosen(names, own []string) (example, error) {
	hello := example{policies: "examples/services/base/policy.yaml", target: "hello/Service/hello", pace: 100 * time.Millisecond}
	switch {
	case len(names) > 0 && len(own) > 0:
		return hello, fmt.Errorf("%s and a command of yours: give one of them", strings.Join(names, ", "))
	case len(own) > 0:
		hello.services = []service{{"own", own}}
		return hello, nil
	case slices.Equal(names, []string{"envoy"}):
		return example{policies: "examples/policies/each-client.yaml", target: "shop/Deployment/catalog", services: inEach()[:1]}, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(inEach(), func(s service) bool { return s.name == name })
		if i < 0 || slices.ContainsFunc(hello.services, func(s service) bool { return s.name == name }) {
			return hello, fmt.Errorf("%s: want go, python and node, each once, or envoy alone, or -- and a command", name)
		}
		hello.services = append(hello.services, inEach()[i])
	}
	if len(hello.services) == 0 {
		return hello, fmt.Errorf("name what to run: go, python, node, envoy, or -- and a command")
	}
	return hello, nil
}
