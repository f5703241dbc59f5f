package main

import (
	"errors"
	"fmt"

	"go.uber.org/zap/zapcore"

	"github.com/weirproxy/weir/aggregator"
	"github.com/weirproxy/weir/aggregator/store"
	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/identitykey"
	"github.com/weirproxy/weir/internal/log"
)

// loaded is a valid configuration, ready to run with.
type loaded struct {
	aggregator aggregator.Config
	level      zapcore.Level
}

func load(configured *cli.Configured[config.Aggregator]) (loaded, error) {
	c, err := configured.Load()
	if err != nil {
		return loaded{}, err
	}
	out := loaded{aggregator: mapped(c)}
	var levelErr, keyErr error
	if out.level, err = log.ParseLevel(c.Log.Level); err != nil {
		levelErr = fmt.Errorf("log.level: %w", err)
	}
	if c.IdentityKeyFile != "" {
		_, keyErr = identitykey.Read(c.IdentityKeyFile)
	}
	if err := errors.Join(out.aggregator.Validate(), cli.Admin(c.Admin), keyErr, levelErr); err != nil {
		return loaded{}, fmt.Errorf("%s: the configuration is invalid:\n%w", configured.Source(), err)
	}
	return out, nil
}

// mapped is the aggregator's own form of the file's settings.
func mapped(c config.Aggregator) aggregator.Config {
	return aggregator.Config{
		Instance: c.Instance, Group: c.Group,
		Handover:        aggregator.Handover(c.Handover),
		Policies:        c.Policies,
		IdentityKeyFile: c.IdentityKeyFile,
		Flush:           c.Flush, Tick: c.Tick,
		MaxCountersPerTarget: c.MaxCountersPerTarget,
		Kafka:                cli.Bus(c.Kafka, program),
		Topics:               cli.Topics(c.Kafka.Topics, c.Topics),
		Redis: store.Config{
			Addresses: c.Redis.Addresses, Cluster: c.Redis.Cluster, Sentinel: store.Sentinel(c.Redis.Sentinel),
			Username: c.Redis.Username, PasswordFile: c.Redis.PasswordFile, TLS: store.TLS(c.Redis.TLS), Timeout: c.Redis.Timeout,
		},
		Admin: admin.Config(c.Admin),
		Grace: c.Stop.Grace,
	}
}
