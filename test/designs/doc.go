// Package designs runs other ways to hold one global limit on the scenarios and by the measures of
// `weir simulate`, so that a reader of docs/accuracy.md can choose: flags that block and unblock a key on every pod, as
// the first systems that left the request path had them; drop ratios from a central controller; and a
// central counter that each request asks, by fixed or by exact sliding windows.
//
// They are written from what such systems are known to do, with one sensible setting each, and are not those systems. All
// see the same arrivals for the same seed, in steps of 1 ms; messages take the scenario's delays and stay in order.
package designs
