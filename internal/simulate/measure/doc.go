// Package measure says how well a quota was held: how full its true window became, how much less than an exact limiter
// it admitted, how soon it was enforced, whom it refused without need. It looks at requests and their answers alone,
// so that any limiter can be measured by it.
//
// A Meter follows one counter, a RateMeter all counters of one rate, Summarize puts runs together. For each request the
// caller asks Exact of every rate that applies, and then tells every one of them (Offer) whether all would have let it
// pass, and what the measured limiter answered.
//
// Time has a grain of 1 ms: a sliding window at t is what was admitted in (t-W, t]. Where the scenario format leaves
// a choice:
//   - a window is full when no further unit fits;
//   - enforcement is timed to the start of the first 50 ms, and the request that fills the window is not counted in
//     them: an exact limiter takes 0 ms;
//   - a request that would not have fitted is no false denial, however empty the window;
//   - what was admitted under a higher limit is not over a lowered one, what is admitted on top of it is;
//   - a token bucket's content is what was spent and has not flowed back, its mean content that of its rate's window.
package measure
