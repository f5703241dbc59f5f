package main

import (
	"errors"
	"fmt"
	"os"

	"go.uber.org/zap/zapcore"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/controller"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/identitykey"
	"github.com/weirproxy/weir/internal/inject"
	"github.com/weirproxy/weir/internal/log"
)

// loaded is a valid configuration, ready to run with.
type loaded struct {
	controller controller.Config
	level      zapcore.Level
}

func load(configured *cli.Configured[config.Controller], injector func(config.Injection) error) (loaded, error) {
	c, err := configured.Load()
	if err != nil {
		return loaded{}, err
	}
	out := loaded{controller: mapped(c)}
	var levelErr, keyErr error
	if out.level, err = log.ParseLevel(c.Log.Level); err != nil {
		levelErr = fmt.Errorf("log.level: %w", err)
	}
	if c.IdentityKeyFile != "" {
		_, keyErr = identitykey.Read(c.IdentityKeyFile)
	}
	if err := errors.Join(out.controller.Validate(), cli.Admin(config.Admin{Address: c.Admin.Address}), keyErr, levelErr,
		injector(c.Injection)); err != nil {
		return loaded{}, fmt.Errorf("%s: the configuration is invalid:\n%w", configured.Source(), err)
	}
	return out, nil
}

// followed leaves the injector's settings to the webhook: a file that is wrong stops injection, until it is right, and
// not the rest.
func followed(config.Injection) error { return nil }

// injectorSettings checks the file that says what is injected.
func injectorSettings(i config.Injection) error {
	if !i.Enabled || i.Settings == "" {
		return nil
	}
	data, err := os.ReadFile(i.Settings)
	if err != nil {
		return fmt.Errorf("injection.settings: %w", err)
	}
	s := inject.DefaultSettings()
	if err := inject.ReadSettings(i.Settings, data, &s); err != nil {
		return fmt.Errorf("injection.settings: %w", err)
	}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("injection.settings: %s:\n%w", i.Settings, err)
	}
	return nil
}

// mapped is the controller's own form of the file's settings.
func mapped(c config.Controller) controller.Config {
	return controller.Config{
		Namespace: c.Namespace, WatchNamespaces: c.WatchNamespaces, Kubeconfig: c.Kubeconfig,
		IdentityKeyFile: c.IdentityKeyFile,
		Kafka:           cli.Bus(c.Kafka, program),
		Topics:          cli.Topics(c.Kafka.Topics, config.TopicSettings{}),
		LeaderElection:  c.LeaderElection,
		Metrics:         c.Metrics,
		Injection:       c.Injection,
		Secrets:         c.Secrets,
		Admin:           admin.Config{Address: c.Admin.Address},
		Grace:           c.Stop.Grace,
	}
}
