package main

import (
	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/internal/inject"
)

func uninjectCommand() *cobra.Command {
	var file string
	var report bool
	cmd := &cobra.Command{
		Use:   "uninject -f FILE",
		Short: "Take the sidecar out of the pods of manifests",
		Long: `Take weir-sidecar, and all that came with it, out of the pods of Kubernetes manifests that weir inject or the
webhook has changed:

  kubectl get deployment orders -o yaml | weir uninject -f - | kubectl apply -f -

What carries no injected sidecar is printed byte for byte.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return rewriteManifests(cmd, file, report, inject.UninjectStream)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`FILE` of manifests, - for standard input")
	cmd.Flags().BoolVar(&report, "report", false, "say on stderr what was done to each object, and why not")
	return cmd
}
