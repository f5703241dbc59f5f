package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/aggregator/store"
	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/checkup"
	"github.com/weirproxy/weir/internal/checkup/cluster"
	"github.com/weirproxy/weir/internal/checkup/installation"
	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/version"
)

const (
	defaultCheckTimeout = 10 * time.Second
	leastCheckTimeout   = time.Second
)

var errNothing = errors.New("there is nothing to look at: for Kubernetes name --kubeconfig ~/.kube/config, or --context NAME for a context of it " +
	"(it is not read unless one of the two is given); else --kafka-brokers HOST:PORT, --redis-addresses HOST:PORT, or a file that has them (--config FILE)")

// checker is weir check's own flags.
type checker struct {
	json, strict bool
	each         time.Duration
}

func checkCommand() *cobra.Command {
	var c checker
	cmd := &cobra.Command{
		Use:   "check [--config FILE] [--strict] [--json]",
		Short: "Look at the whole installation, and say what is wrong and what to do about it",
		Long: `Look at Kafka and its topics, Redis, the owners of partitions, sidecars and policies; and in Kubernetes at the resource's
definition, the programs, the injector and its certificate, Secrets, the policies' status and the mesh. Each finding comes
with what to do. Nothing is changed. What is not named is skipped, and so is what this user may not read.

  ok        in order
  skipped   not looked at; it says why
  warning   quotas hold, but something is not as it was meant, or will end badly
  failed    some quota is not enforced as its policy says, or something that weir needs is broken

The exit code is 1 if anything failed, or with --strict if there is a warning or something that this user may not look
at. docs/check.md has each check, the fields of
--json, and the rights that are needed in Kafka, Redis and Kubernetes.`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&c.json, "json", false, "print the findings as JSON")
	f.BoolVar(&c.strict, "strict", false, "end with exit code 1 for warnings too, and for what this user may not look at")
	f.DurationVar(&c.each, "timeout", defaultCheckTimeout, "how long each check may take")
	configured := cli.Configure(cmd, config.DefaultCheck())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.each < leastCheckTimeout {
			return cli.Usage(fmt.Errorf("--timeout %v: want %v or longer", c.each, leastCheckTimeout))
		}
		cfg, err := configured.Load()
		if err != nil {
			return err
		}
		return c.run(cmd, cfg)
	}
	return cmd
}

func (c checker) run(cmd *cobra.Command, cfg config.Check) error {
	parts := checkParts(cfg)
	if err := validateParts(parts); err != nil {
		return fmt.Errorf("the configuration is invalid:\n%w", err)
	}
	client, err := cluster.Connect(cfg.Kubernetes.Kubeconfig, cfg.Kubernetes.Context)
	switch {
	case errors.Is(err, cluster.ErrNone):
		if len(parts.Kafka.Brokers) == 0 && len(parts.Redis.Addresses) == 0 {
			return cli.Usage(errNothing)
		}
	case err != nil:
		return err
	}
	basis := installation.New(parts)
	defer basis.Close()
	kubernetes := cluster.New(cluster.Config{
		Client: client, Namespace: cfg.Kubernetes.Namespace, IstioNamespace: cfg.Kubernetes.IstioNamespace,
		IdentitySecret: cfg.Kubernetes.IdentitySecret, CertificateSecret: cfg.Kubernetes.CertificateSecret,
		Version: parts.Version, Fingerprint: basis.Fingerprint,
	})
	report := checkup.Run(cmd.Context(), append(basis.All(), kubernetes.All()...), c.each)
	report.Version = version.Short()
	return c.show(cmd, report)
}

func (c checker) show(cmd *cobra.Command, report *checkup.Report) error {
	out := newScreen(cmd.OutOrStdout())
	if c.json {
		e := json.NewEncoder(out.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(report); err != nil {
			return err
		}
		return report.Err(c.strict)
	}
	width := 0
	if out.size != nil {
		width, _ = out.size()
	}
	fmt.Fprintln(out.out, strings.Join(report.Lines(width), "\n"))
	return report.Err(c.strict)
}

// checkParts are the installation's parts as the file has them.
func checkParts(c config.Check) installation.Config {
	return installation.Config{
		Kafka:  cli.Bus(c.Kafka, "weir-check"),
		Topics: cli.Topics(c.Kafka.Topics, c.Topics),
		Redis: store.Config{
			Addresses: c.Redis.Addresses, Cluster: c.Redis.Cluster, Sentinel: store.Sentinel(c.Redis.Sentinel),
			Username: c.Redis.Username, PasswordFile: c.Redis.PasswordFile, TLS: store.TLS(c.Redis.TLS), Timeout: c.Redis.Timeout,
		},
		KeyFile: c.IdentityKeyFile,
		Version: ownVersion(),
	}
}

// ownVersion is this program's version, "" where it was built without one.
func ownVersion() string {
	if v := version.Short(); v != "unknown" {
		return v
	}
	return ""
}

// validateParts refuses what is named and cannot be; what is not named is left out.
func validateParts(c installation.Config) error {
	var errs []error
	if len(c.Kafka.Brokers) > 0 {
		errs = append(errs, c.Kafka.Validate())
	}
	if len(c.Redis.Addresses) > 0 {
		errs = append(errs, c.Redis.Validate())
	}
	return errors.Join(errs...)
}
