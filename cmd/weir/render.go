package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/render"
)

const renderAbout = `

--policies takes policy files and directories: then headers, token claims and the failure mode are what the targets'
policies need, and the targets' kinds are found there. Without it all headers are sent, and requests pass while the
sidecar is away. Render anew when a policy reads another header.`

func renderCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Print the configuration that has an Envoy ask the sidecar",
		Long: `Print complete, commented configuration that has an Envoy ask the sidecar: for an Envoy of your own, for Istio, or for
Envoy Gateway.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(renderEnvoy(), renderIstio(), renderEnvoyFilter(), renderGateway())
	return cmd
}

func renderEnvoy() *cobra.Command {
	r := renderer{kind: "Service", check: unixCheck, write: render.Envoy}
	cmd := r.command("envoy", "Print a plain Envoy's configuration", `Print the whole configuration of a plain Envoy: one listener, the check before the router, one service behind it. It runs
as it is; take the filter and the cluster weir for one that you have.`)
	f := cmd.Flags()
	f.StringVar(&r.options.Listener, "listener", "0.0.0.0:8080", "`ADDRESS` that Envoy listens on")
	f.StringVar(&r.options.Service, "service", "127.0.0.1:8081", "`ADDRESS` of the service")
	f.BoolVar(&r.options.AccessLog, "access-log", false, "write a line a request, with the limit that refused it")
	f.StringVar(&r.options.Admin, "admin", "127.0.0.1:9901", "`ADDRESS` of Envoy's admin server")
	r.markUnchecked(f)
	return cmd
}

func renderIstio() *cobra.Command {
	r := renderer{kind: "Service", check: "tcp://127.0.0.1:9191", write: render.Istio}
	cmd := r.command("istio", "Print Istio's configuration: a CUSTOM authorizer", `Print what has Istio's proxies ask the sidecar as an authorizer of its own: ServiceEntry and DestinationRule for the sidecar's
address, an AuthorizationPolicy with action CUSTOM; with --mesh-config the mesh's part instead, as values of the chart istiod.`)
	mesh := false
	cmd.Flags().BoolVar(&mesh, "mesh-config", false, "print the mesh's part: the provider")
	r.selector(cmd.Flags())
	r.write = func(o render.Options) ([]byte, error) {
		if mesh {
			return render.IstioMesh(o)
		}
		return render.Istio(o)
	}
	return cmd
}

func renderEnvoyFilter() *cobra.Command {
	r := renderer{kind: "Service", check: unixCheck, write: render.IstioEnvoyFilter}
	cmd := r.command("istio-envoyfilter", "Print Istio's configuration: an EnvoyFilter", `Print an EnvoyFilter that puts the check into Istio's proxies just before the router. Use it for what a CUSTOM authorizer
cannot say: token claims, which headers are sent, values of any bytes, targets of a gateway's routes. For a unix
socket its volume is mounted in istio-proxy too: annotation sidecar.istio.io/userVolumeMount.`)
	f := cmd.Flags()
	f.IntVar(&r.options.RouteRules, "route-rules", 1, "how many rules each of the routes has")
	r.selector(f)
	r.gateway(f)
	r.markUnchecked(f)
	return cmd
}

func renderGateway() *cobra.Command {
	r := renderer{kind: "HTTPRoute", check: unixCheck, write: render.EnvoyGateway}
	cmd := r.command("envoy-gateway", "Print Envoy Gateway's configuration", `Print what has Envoy Gateway's proxies ask the sidecar: its socket as a Backend, a SecurityPolicy for each target (HTTPRoute,
GRPCRoute or Gateway), and an EnvoyProxy that mounts the socket and has the check come after authentication.`)
	r.gateway(cmd.Flags())
	return cmd
}

const unixCheck = "unix:///run/weir/check.sock"

// renderer is one of the commands: what its flags say, and what writes it.
type renderer struct {
	kind     string // of a target that is written without one
	check    string
	targets  []string
	policies []string
	fail     string
	all      bool
	options  render.Options
	write    func(render.Options) ([]byte, error)
}

func (r *renderer) command(name, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name + " --target NAMESPACE/NAME",
		Short: short,
		Long:  long + renderAbout,
		Args:  cobra.NoArgs,
		RunE:  r.run,
	}
	f := cmd.Flags()
	f.StringArrayVar(&r.targets, "target", nil, "`NAMESPACE/NAME` or NAMESPACE/KIND/NAME of whose requests are counted; may be repeated")
	f.StringArrayVar(&r.policies, "policies", nil, "policy `FILE` or directory; may be repeated")
	f.StringVar(&r.check, "check", r.check, "`ADDRESS` that the sidecar listens on")
	f.DurationVar(&r.options.Timeout, "timeout", render.DefaultTimeout, "the longest wait for a check")
	f.StringVar(&r.fail, "fail", "", "open or closed while the sidecar is away (default: as the policies say)")
	f.BoolVar(&r.all, "all-headers", false, "send all headers, whatever the policies read today")
	return cmd
}

func (r *renderer) selector(f *pflag.FlagSet) {
	f.StringToStringVar(&r.options.Selector, "selector", nil, "labels of the target's pods (default: app=NAME)")
}

func (r *renderer) gateway(f *pflag.FlagSet) {
	f.StringVar(&r.options.Gateway, "gateway", "", "`NAMESPACE/NAME` of the Gateway that the routes belong to")
}

func (r *renderer) markUnchecked(f *pflag.FlagSet) {
	f.BoolVar(&r.options.MarkUnchecked, "mark-unchecked", false, "tell the service which requests nobody checked, by a header")
}

func (r *renderer) run(cmd *cobra.Command, _ []string) error {
	if err := r.settle(cmd); err != nil {
		return err
	}
	text, err := r.write(r.options)
	if err != nil {
		return cli.Usage(err)
	}
	if _, err := cmd.OutOrStdout().Write(text); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return nil
}
