// Package load sends requests at given rates and keeps its own account of the
// answers, apart from anything that weir itself counts: tests of the whole
// system judge over-admission by it.
//
// Load is open: a request is due when its source's rate says so, whether or not
// earlier ones have been answered. Only a bound on the requests under way holds
// it back, and what could not be sent is counted as Unsent.
//
//	run, err := load.Start(load.Config{
//		Pods: []load.Pod{{Name: "a", Target: load.HTTP(envoyA.Addr(), 16)}, …},
//		Sources: []load.Source{{
//			Name:    "acme",
//			Request: load.Request{Path: "/orders", Header: map[string]string{"x-api-key": "acme"}},
//			Rate:    load.Steps(load.Step{For: 2 * time.Second, PerSecond: 50}, load.Step{For: 5 * time.Second, PerSecond: 500}),
//		}},
//		For: 7 * time.Second,
//	})
//	result := run.Wait()
//	worst := result.Of("acme").MaxWindow(time.Second)
//
// A [Target] is an Envoy over HTTP/1.1 ([HTTP]) or a checker asked directly
// over gRPC ([GRPC]). Both take the same requests.
package load
