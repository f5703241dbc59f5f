package leases

import "time"

// Draw returns a number in [lo, hi]; what tells apart what is drawn.
type Draw func(what string, lo, hi int) int

func (d Draw) millis(what string, lo, hi int) time.Duration {
	return time.Duration(d(what, lo, hi)) * time.Millisecond
}

// Search draws a short run with small numbers and every kind of fault, so that what can go wrong does.
func Search(hold Hold, omit Omission, draw Draw) Config {
	c := Config{Pods: draw("pods", 1, 5), Duration: 3 * time.Second, Seed: uint64(draw("seed", 0, 1<<20))}
	c.Rules = Rules{
		Limit: draw("limit", 1, 40), Window: draw.millis("window", 150, 1000), Lease: draw.millis("lease", 80, 300),
		Hold: hold, Omit: omit, Drift: 0.02, StampError: draw.millis("stamps", 0, 200),
	}
	c.Jitter = 40 * time.Millisecond
	c.Flush, c.Tick = draw.millis("flush", 5, 50), draw.millis("tick", 2, 25)
	c.UplinkMin, c.DownlinkMin = time.Millisecond, time.Millisecond
	c.UplinkMax = draw.millis("uplink", 1, 12)
	c.DownlinkMax = draw.millis("downlink", 1, 12)
	c.Tail, c.TailMax = 0.02, draw.millis("tail", 0, 150)
	c.Load = waves(draw, float64(c.Limit)/c.Window.Seconds()/float64(c.Pods))
	c.Faults = faults(draw, &c)
	return c
}

// waves are loads that rise and fall at each pod apart, to several times its even part.
func waves(draw Draw, even float64) Load {
	times := float64(draw("load", 1, 60)) / 4
	period := draw.millis("wave", 100, 1500)
	return func(pod int, t time.Duration) float64 {
		phase := (int64(t/period) + int64(pod)) * 0x9e3779b9 >> 7 & 3
		return even * times * float64(phase)
	}
}

func faults(draw Draw, c *Config) Faults {
	f := Faults{
		Loss: part(draw, "loss"), AckLoss: part(draw, "ack loss"), Duplicate: part(draw, "duplicate"), Redeliver: part(draw, "redeliver"),
		Late: draw.millis("late", 1, 600), Clocks: c.Drift, Stamps: c.StampError,
	}
	for range draw("stops", 0, 4) {
		f.Stops = append(f.Stops, Stop{
			Pod: draw("pod", 0, c.Pods-1), From: draw.millis("from", 0, 2500), For: draw.millis("for", 1, 1200),
			Stage: Stage(draw("stage", 0, int(Anywhere))), Process: draw("process", 0, 1) == 1,
		})
	}
	for range draw("cuts", 0, 2) {
		f.Cuts = append(f.Cuts, Cut{draw("pod", 0, c.Pods-1), draw.millis("from", 0, 2500), draw.millis("for", 1, 1000)})
	}
	for range draw("crashes", 0, 2) {
		f.Crashes = append(f.Crashes, Crash{draw("pod", 0, c.Pods-1), draw.millis("at", 0, 2500), draw.millis("back", 0, 500)})
	}
	for at := time.Duration(0); len(f.Moves) < 2 && draw("move", 0, 1) == 1; {
		at += draw.millis("at", 300, 1500)
		f.Moves = append(f.Moves, Move{at, draw.millis("gap", 1, 300), draw.millis("zombie", 0, 400)})
	}
	for range draw("owner stops", 0, 2) {
		f.OwnerStops = append(f.OwnerStops, OwnerStop{draw.millis("from", 0, 2500), draw.millis("for", 1, 600), OwnerStage(draw("stage", 0, int(Granted)))})
	}
	return f
}

func part(draw Draw, what string) float64 { return float64(draw(what, 0, 3)) / 10 }
