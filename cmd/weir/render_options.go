package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/internal/cli"
	"github.com/weirproxy/weir/internal/listen"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/render"
)

// settle makes options of the flags.
func (r *renderer) settle(cmd *cobra.Command) (err error) {
	if len(r.targets) == 0 {
		return cli.Usage(errors.New("give --target, such as shop/orders"))
	}
	if r.options.Check, err = listen.Parse(r.check); err != nil {
		return cli.Usage(fmt.Errorf("--check: %w", err))
	}
	set, err := r.read(cmd)
	if err != nil {
		return err
	}
	if r.options.Targets, err = r.canonical(set); err != nil {
		return cli.Usage(err)
	}
	if set != nil {
		if r.options.Needs, err = needs(set, r.options.Targets); err != nil {
			return err
		}
	}
	if err := r.override(); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// override lets flags hold over what the policies need.
func (r *renderer) override() error {
	if r.all {
		r.options.Needs.Known = false
	}
	switch r.fail {
	case "":
	case "open":
		r.options.Needs.FailClosed = false
	case "closed":
		r.options.Needs.FailClosed = true
	default:
		return fmt.Errorf("--fail %s: want open or closed", r.fail)
	}
	return nil
}

// read compiles the policies that were named; nil where none were.
func (r *renderer) read(cmd *cobra.Command) (*policy.Set, error) {
	if len(r.policies) == 0 {
		return nil, nil //nolint:nilnil // no policies is a choice
	}
	docs, err := readPolicies(cmd, r.policies)
	if err != nil {
		return nil, err
	}
	var compiled []*policy.Policy
	for _, d := range docs {
		namespace, name, _ := strings.Cut(nameOf(d.spec), "/")
		p, err := policy.Compile(policy.Key{Origin: policy.OriginFile, Namespace: namespace, Name: name}, 0, d.spec, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.file, err)
		}
		compiled = append(compiled, p)
	}
	return policy.NewSet(compiled), nil
}

// needs is what the targets' policies need; that there are none is said, since all headers would be left out.
func needs(set *policy.Set, targets []string) (render.Needs, error) {
	policies := set.ForTargets(targets...)
	if len(policies) == 0 {
		return render.Needs{}, fmt.Errorf("no policy is for %s; there are policies for %s", strings.Join(targets, ", "), strings.Join(targetsIn(set), ", "))
	}
	return render.NeedsOf(policies), nil
}

func targetsIn(set *policy.Set) (names []string) {
	for _, p := range set.Policies() {
		for _, t := range p.Targets {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// canonical are the targets with their kinds: those that the policies name, else the command's usual one.
func (r *renderer) canonical(set *policy.Set) (names []string, err error) {
	for _, t := range r.targets {
		found := []string{t}
		if namespace, name, ok := strings.Cut(t, "/"); ok && !strings.Contains(name, "/") {
			found = r.kindsOf(set, namespace, name)
		}
		for _, f := range found {
			if _, _, _, err := policy.ParseTarget(f); err != nil {
				return nil, fmt.Errorf("--target: %w", err)
			}
		}
		names = append(names, found...)
	}
	return names, nil
}

func (r *renderer) kindsOf(set *policy.Set, namespace, name string) (found []string) {
	if set != nil {
		for _, t := range targetsIn(set) {
			if strings.HasPrefix(t, namespace+"/") && strings.HasSuffix(t, "/"+name) {
				found = append(found, t)
			}
		}
	}
	if len(found) == 0 {
		found = []string{policy.TargetName(namespace, r.kind, name)}
	}
	return found
}
