package main

import (
	"errors"
	"fmt"
	"os"

	"go.uber.org/zap/zapcore"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/identitykey"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/sidecar"
	"github.com/weirproxy/weir/sidecar/extauthz"
)

// loaded is a valid configuration, ready to run with.
type loaded struct {
	sidecar sidecar.Config
	level   zapcore.Level
}

func load(configured *cli.Configured[config.Sidecar]) (loaded, error) {
	c, err := configured.Load()
	if err != nil {
		return loaded{}, err
	}
	out := loaded{sidecar: mapped(c)}
	var levelErr, keyErr error
	if out.level, err = log.ParseLevel(c.Log.Level); err != nil {
		levelErr = fmt.Errorf("log.level: %w", err)
	}
	if c.IdentityKeyFile != "" {
		_, keyErr = identitykey.Read(c.IdentityKeyFile)
	}
	if err := errors.Join(out.sidecar.Validate(), cli.Admin(c.Admin), keyErr, levelErr); err != nil {
		return loaded{}, fmt.Errorf("%s: the configuration is invalid:\n%w", configured.Source(), err)
	}
	return out, nil
}

// mapped is the sidecar's own form of the file's settings.
func mapped(c config.Sidecar) sidecar.Config {
	pod := c.Pod.Name
	if pod == "" {
		pod, _ = os.Hostname() // "" is refused with the field's name
	}
	return sidecar.Config{
		Listen: c.Listen, Server: extauthz.Kind(c.Server),
		Namespace: c.Pod.Namespace, Pod: pod,
		OwnerKind: c.Pod.OwnerKind, OwnerName: c.Pod.OwnerName, Labels: c.Pod.Labels,
		Targets:         c.Targets,
		IdentityKeyFile: c.IdentityKeyFile,
		StateDir:        c.StateDir,
		MaxCounters:     c.MaxCounters,
		Kafka:           cli.Bus(c.Kafka, program),
		Topics:          cli.Topics(c.Kafka.Topics, config.TopicSettings{}),
		Admin:           admin.Config(c.Admin),
		Grace:           c.Stop.Grace,
	}
}
