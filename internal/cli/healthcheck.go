package cli

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/admin"
)

// Healthcheck asks the running program, found by its configuration, whether it is ready. It is for
// probes in images that hold nothing else.
func Healthcheck[T any](program string, defaults T, adminOf func(T) config.Admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask the running " + program + " whether it is ready (exit code 0) or, with --live, alive",
		Args:  cobra.NoArgs,
	}
	live := cmd.Flags().Bool("live", false, "ask whether it is alive, ready or not")
	configured := Configure(cmd, defaults)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := configured.Load()
		if err != nil {
			return err
		}
		addr := adminOf(cfg).Address
		if addr == "" {
			return fmt.Errorf("admin.address is empty, so there is nobody to ask: set it as the running program has it")
		}
		path := "/readyz"
		if *live {
			path = "/healthz"
		}
		return ask(cmd, addr, path)
	}
	return cmd
}

func ask(cmd *cobra.Command, addr, path string) error {
	client, err := admin.NewClient(addr)
	if err != nil {
		return err
	}
	status, body, err := client.Get(cmd.Context(), path)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(body))
	if status != http.StatusOK {
		return fmt.Errorf("%s%s answered %d:\n%s", addr, path, status, text)
	}
	fmt.Fprintln(cmd.OutOrStdout(), text)
	return nil
}
