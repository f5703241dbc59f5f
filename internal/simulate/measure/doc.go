// Package measure says how well a quota was held: how full its true window became, how much less than an exact limiter
// it admitted, how soon it was enforced, whom it refused without need. It looks at requests and their answers alone,
// so that any limiter can be measured by it.
package measure
