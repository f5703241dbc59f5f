package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/inject"
)

// injectFlags are what weir inject is told.
type injectFlags struct {
	file, settings string
	image, mode    string
	brokers        []string
	options        inject.Options
	report         bool
}

func injectCommand() *cobra.Command {
	var f injectFlags
	cmd := &cobra.Command{
		Use:   "inject -f FILE",
		Short: "Put the sidecar into the pods of manifests",
		Long: `Put weir-sidecar into the pods of Kubernetes manifests, as the webhook does to pods:

  weir inject -f orders.yaml --settings weir.yaml | kubectl apply -f -

FILE holds YAML documents or JSON objects (- for standard input). Pod, Deployment, StatefulSet, DaemonSet,
ReplicaSet, ReplicationController, Job, CronJob, PodTemplate and List are understood; everything else, and
what is not changed, is printed byte for byte. A changed document loses its comments and the order of its
keys. Injecting again changes nothing. After an error nothing is printed.`,
		Args: cobra.NoArgs,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.file, "filename", "f", "", "`FILE` of manifests, - for standard input")
	fs.StringVar(&f.settings, "settings", "", "`FILE` of the injector's settings (YAML); flags hold over it")
	fs.StringVar(&f.image, "image", "", "`IMAGE` of the sidecar")
	fs.StringSliceVar(&f.brokers, "kafka-brokers", nil, "host:port `ADDRESSES` of Kafka, by commas")
	fs.StringVar(&f.mode, "mode", "", "`MODE` Native (Kubernetes 1.29 and later) or Plain; Native where neither this nor the settings say")
	fs.StringVarP(&f.options.Namespace, "namespace", "n", "", "`NAMESPACE` of what names none")
	fs.BoolVar(&f.options.OptIn, "opt-in", false, "inject only what a label asks for, as the webhook does")
	fs.BoolVar(&f.report, "report", false, "say on stderr what was done to each object, and why not")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := named(f.file); err != nil {
			return err
		}
		engine, err := f.engine()
		if err != nil {
			return err
		}
		return rewriteManifests(cmd, f.file, f.report, func(in []byte) ([]byte, inject.Report, error) {
			return engine.Stream(in, f.options)
		})
	}
	return cmd
}

func (f injectFlags) engine() (*inject.Engine, error) {
	s := inject.DefaultSettings()
	if f.settings != "" {
		data, err := os.ReadFile(f.settings)
		if err != nil {
			return nil, fmt.Errorf("read the settings: %w", err)
		}
		if err := inject.ReadSettings(f.settings, data, &s); err != nil {
			return nil, fmt.Errorf("the injector's settings are invalid:\n%w", err)
		}
	}
	if f.image != "" {
		s.Image = f.image
	}
	if f.mode != "" {
		s.Mode = f.mode
	}
	if len(f.brokers) > 0 {
		s.Kafka.Brokers = f.brokers
	}
	return inject.New(s)
}

// rewriteManifests prints what change makes of a file, all or nothing.
func rewriteManifests(cmd *cobra.Command, file string, report bool, change func([]byte) ([]byte, inject.Report, error)) error {
	if err := named(file); err != nil {
		return err
	}
	in, err := manifests(cmd, file)
	if err != nil {
		return fmt.Errorf("read the manifests: %w", err)
	}
	out, told, err := change(in)
	if err != nil {
		return fmt.Errorf("nothing is written:\n%w", err)
	}
	if report {
		fmt.Fprint(cmd.ErrOrStderr(), told)
	}
	if _, err := cmd.OutOrStdout().Write(out); err != nil {
		return fmt.Errorf("write the manifests: %w", err)
	}
	return nil
}

func named(file string) error {
	if file == "" {
		return cli.Usage(errors.New("give -f FILE, or -f - for standard input"))
	}
	return nil
}

func manifests(cmd *cobra.Command, file string) ([]byte, error) {
	return readInput(cmd, file, inject.MaxStream)
}
