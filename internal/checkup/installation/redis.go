package installation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/aggregator/store"
	"github.com/weirproxy/weir/internal/checkup"
)

// redis collects what Redis says, each fact once.
type redis struct {
	cfg   store.Config
	store *store.Redis
	nodes once[[]store.Node]
}

var errNoRedis = errors.New("no Redis is named")

func (r *redis) inspect(ctx context.Context) ([]store.Node, error) {
	return r.nodes.get(ctx, func(ctx context.Context) ([]store.Node, error) {
		if len(r.cfg.Addresses) == 0 {
			return nil, errNoRedis
		}
		var err error
		if r.store, err = store.New(r.cfg); err != nil {
			return nil, err
		}
		return r.store.Inspect(ctx)
	})
}

func (r *redis) close() {
	if r.store != nil {
		r.store.Close()
	}
}

// redisReachable is the check redis.reachable.
func (c *Checks) redisReachable(ctx context.Context) []checkup.Finding {
	nodes, err := c.redis.inspect(ctx)
	if err != nil && !mayNot(err) {
		return judgeRedisAway(err)
	}
	return judgeRedis(nodes, c.redis.store.Probe(ctx))
}

func judgeRedisAway(err error) []checkup.Finding {
	if errors.Is(err, errNoRedis) {
		return []checkup.Finding{checkup.Skip("name it: --redis-addresses, or redis.addresses in the file of --config", "%v", err)}
	}
	return []checkup.Finding{checkup.Fail("is the address right, is the server up, may this machine reach it, and do redis.tls, redis.username and redis.passwordFile fit?", "%v", err)}
}

func judgeRedis(nodes []store.Node, probe error) []checkup.Finding {
	var out []checkup.Finding
	for _, n := range nodes {
		if old(n.Version) {
			out = append(out, checkup.Fail("run Redis 6.2 or later, or Valkey", "%s is Redis %s", n.Address, n.Version))
		}
		if len(nodes) == 1 && n.Role == "slave" {
			out = append(out, checkup.Fail("name the master, or the sentinels with redis.sentinel.master", "%s is a replica, which takes no writes", n.Address))
		}
	}
	if probe != nil {
		out = append(out, checkup.Fail("give the user of redis.username the keys ~{weir:* and +eval +evalsha +hgetall +hmget +hset +del +pexpire, besides +@connection", "the script does not run: %v", probe))
	}
	return checkup.OrOkay(out, "%s, the script runs", told(nodes))
}

const byHand = "maxmemory-policy noeviction, and appendonly yes where limits count over an hour or more"

// mayNot reports whether Redis answered that this user has no right to ask.
func mayNot(err error) bool { return err != nil && strings.Contains(err.Error(), "NOPERM") }

// told names the servers with their versions.
func told(nodes []store.Node) string {
	if len(nodes) == 0 {
		return "it answers"
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Address + " " + orElse(n.Version, "of a version that it does not tell")
	}
	return checkup.Names(names)
}

const (
	leastMajor = 6
	leastMinor = 2
)

// old reports whether a version is known to be below the least one.
func old(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && (major < leastMajor || major == leastMajor && minor < leastMinor)
}

// redisSettings is the check redis.settings.
func (c *Checks) redisSettings(ctx context.Context) []checkup.Finding {
	nodes, err := c.redis.inspect(ctx)
	switch {
	case mayNot(err):
		return []checkup.Finding{checkup.Deny("give the user of redis.username +info, or see to it by hand: "+byHand, "this user may not ask Redis for its settings")}
	case err != nil:
		return []checkup.Finding{checkup.Skip("", "Redis does not answer")}
	}
	n := needs{}
	if p, err := c.kafka.policyFacts(ctx); err == nil {
		n = needsOf(p.set)
	}
	return judgeRedisSettings(nodes, n)
}

func judgeRedisSettings(nodes []store.Node, n needs) []checkup.Finding {
	var out []checkup.Finding
	unknown := []string{}
	for _, s := range nodes {
		switch {
		case s.Eviction == "":
			unknown = append(unknown, s.Address)
		case s.Eviction != "noeviction" && s.MaxMemory != "0":
			out = append(out, checkup.Warn("CONFIG SET maxmemory-policy noeviction, and in its configuration file", "%s drops counters when its memory is full (maxmemory %s, maxmemory-policy %s): quotas start anew", s.Address, s.MaxMemory, s.Eviction))
		}
		if s.AppendOnly == "0" && n.long != "" {
			out = append(out, checkup.Warn("CONFIG SET appendonly yes, and in its configuration file", "%s keeps no file of each write (AOF), and limit %s counts over an hour or more: if an owner and Redis's memory are lost together, that is lost", s.Address, n.long))
		}
	}
	if len(unknown) > 0 {
		out = append(out, checkup.Skip("see to it by hand: "+byHand, "%s does not tell its settings (INFO)", checkup.Names(unknown)))
	}
	return checkup.OrOkay(out, "%s, no counter is evicted%s", checkup.Many(len(nodes), "server"), persistence(nodes, n))
}

func persistence(nodes []store.Node, n needs) string {
	switch {
	case !n.read:
		return "; whether a file of each write (AOF) is needed is for the policies to say, which were not read"
	case n.long == "":
		return "; no limit counts over an hour or more, so no file (AOF) is needed"
	}
	return fmt.Sprintf(", writes are kept in files (AOF) on all %d", len(nodes))
}
