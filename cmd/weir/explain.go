package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/explain"
)

func explainCommand() *cobra.Command {
	var sidecar string
	var headers, claims []string
	var asJSON bool
	var req explain.Request
	cmd := &cobra.Command{
		Use:   "explain --sidecar ADDR [--method M] [--path P] [--header 'NAME: VALUE']…",
		Short: "Say what a sidecar would answer to a request, and why, charging nothing",
		Long: `Ask a running sidecar, by its admin address, which limits apply to a request, what their counters hold, what share this
pod has, and what a check would answer now. Nothing is charged. Run it beside the sidecar: /debug answers on loopback only.`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&sidecar, "sidecar", "127.0.0.1:9192", "admin `ADDRESS` of the sidecar: host:port or unix:///path")
	f.StringVarP(&req.Method, "method", "X", "GET", "request method")
	f.StringVar(&req.Path, "path", "/", "path with its query, as Envoy would send it")
	f.StringArrayVarP(&headers, "header", "H", nil, "`NAME: VALUE`; may be repeated")
	f.StringVar(&req.Host, "host", "", "host (:authority)")
	f.StringVar(&req.RemoteAddress, "remote-address", "", "the peer's IP address")
	f.StringVar(&req.Principal, "principal", "", "the peer's SPIFFE id")
	f.StringArrayVar(&claims, "claim", nil, "`NAME=VALUE` of a verified token; may be repeated")
	f.StringVar(&req.Target, "target", "", "target as context_extensions[\"weir.target\"] would name it")
	f.BoolVar(&asJSON, "json", false, "print the answer as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := fill(&req, headers, claims); err != nil {
			return cli.Usage(err)
		}
		client, err := admin.NewClient(sidecar)
		if err != nil {
			return cli.Usage(err)
		}
		var answer explain.Response
		if err := client.Post(cmd.Context(), explain.Path, req, &answer); err != nil {
			return err
		}
		if asJSON {
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(answer)
		}
		printAnswer(cmd.OutOrStdout(), answer)
		return nil
	}
	return cmd
}

// fill takes headers and claims as the command line has them.
func fill(req *explain.Request, headers, claims []string) error {
	for _, h := range headers {
		name, value, ok := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return fmt.Errorf("--header %q: write 'name: value'", h)
		}
		if req.Headers == nil {
			req.Headers = map[string][]string{}
		}
		name = strings.ToLower(name)
		req.Headers[name] = append(req.Headers[name], strings.TrimSpace(value))
	}
	for _, c := range claims {
		name, value, ok := strings.Cut(c, "=")
		if !ok || name == "" {
			return errors.New("--claim: write name=value")
		}
		if req.Claims == nil {
			req.Claims = map[string]string{}
		}
		req.Claims[name] = value
	}
	return nil
}

func printAnswer(out io.Writer, a explain.Response) {
	verdict := "allowed"
	switch {
	case !a.Allowed && a.RefusedBy != "":
		verdict = fmt.Sprintf("refused with %d by %s", a.Status, a.RefusedBy)
	case !a.Allowed:
		verdict = "not answered: Envoy's own failure mode applies"
	}
	fmt.Fprintf(out, "%s (%s)\n", verdict, a.Outcome)
	fmt.Fprintf(out, "targets: %s\n", orNone(strings.Join(a.Targets, ", ")))
	for _, d := range a.Degraded {
		fmt.Fprintf(out, "degraded: %s\n", d)
	}
	for _, c := range a.Counters {
		printCounter(out, c)
	}
	if a.Allowed && len(a.Counters) == 0 {
		fmt.Fprintln(out, "no limit applies")
	}
}

func printCounter(out io.Writer, c explain.Counter) {
	state := "passes"
	if !c.OK {
		state = "refuses"
	}
	if c.Mode != "Enforce" {
		state += " (" + c.Mode + ": never refused)"
	}
	fmt.Fprintf(out, "\n%s/%s  %s  %s\n", c.Policy, c.Limit, c.Rate, state)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "  %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	by := strings.Join(c.CountedBy, ", ")
	if by == "" {
		by = "nothing: one for the whole target"
	}
	line("counter", "%s by %s", c.ID, by)
	if c.Overflow {
		line("overflow", "this key shares the limit's overflow counter")
	}
	if c.Total != nil {
		line("total", "%.1f of %g over all pods", *c.Total, c.Amount)
	}
	line("remaining", "%.1f", c.Remaining)
	if c.Share != nil {
		line("share", "%.1f %% of it is this pod's", 100**c.Share)
	}
	line("decided by", "%s", c.Basis)
	if c.DecisionAgeMS != nil {
		line("age", "%.0f ms", *c.DecisionAgeMS)
	}
	if !c.OK {
		line("retry after", "%.1f s", c.RetryAfterMS/1000)
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
