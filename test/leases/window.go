package leases

// exact is a limiter without delay: what under-admission is measured against.
type exact struct {
	limit, window, sum int
	log                []int
}

// take admits what it can of n requests that come in the next ms.
func (e *exact) take(n int) int {
	if old := len(e.log) - e.window; old >= 0 {
		e.sum -= e.log[old]
	}
	n = min(n, e.limit-e.sum)
	e.sum += n
	e.log = append(e.log, n)
	return n
}

// Fullest is the content of the fullest of all windows of window ms, each without its end.
func Fullest(log []int, window int) int {
	content, worst := 0, 0
	for i, n := range log {
		content += n
		if i >= window {
			content -= log[i-window]
		}
		worst = max(worst, content)
	}
	return worst
}

// Over is by how many units the fullest window of log exceeds the limit; negative if none does.
func (c *Config) Over(log []int) int {
	return Fullest(log, int(c.Window.Milliseconds())) - c.Limit
}

// Under is by how much the mean window of log, from Steady on, is less than an exact limiter's, %.
func (c *Config) Under(r *Result, log []int) float64 {
	window, from := int(c.Window.Milliseconds()), int(c.Steady.Milliseconds())
	exact := mean(r.Exact, window, from)
	if exact == 0 {
		return 0
	}
	return 100 * (1 - mean(log, window, from)/exact)
}

// mean content of the windows that end from a ms on.
func mean(log []int, window, from int) float64 {
	content, sum := 0, 0
	for i, n := range log {
		content += n
		if i >= window {
			content -= log[i-window]
		}
		if i >= from {
			sum += content
		}
	}
	return float64(sum) / float64(max(len(log)-from, 1))
}
