package bus

import (
	"context"
	"fmt"

	"github.com/IBM/sarama"
)

// Principals are the Kafka users that each program authenticates as, such as "User:weir-sidecar".
// Those left empty get nothing.
type Principals struct {
	// Sidecar writes usage and status, and reads decisions and policies.
	Sidecar string
	// Aggregator reads usage, policies and status, writes usage (claims), decisions, policies
	// (origin file, installation) and status (tombstones), and is in the consumer group.
	Aggregator string
	// Controller writes policies and reads status and policies.
	Controller string
	// CLI (`weir apply`) writes and reads policies, and reads status.
	CLI string
	// Group is the aggregators' consumer group.
	Group string
}

// Rule is one right that a principal has.
type Rule struct {
	Principal string
	Group     bool // Name is a consumer group; otherwise a topic
	Name      string
	Write     bool // otherwise read
}

// String says the rule for a person.
func (r Rule) String() string {
	kind, verb := "topic", "read"
	if r.Group {
		kind = "group"
	}
	if r.Write {
		verb = "write"
	}
	return fmt.Sprintf("%s may %s %s %s", r.Principal, verb, kind, r.Name)
}

// Rules are the least rights that each program needs.
func (p Principals) Rules(t Topics) []Rule {
	t = t.WithDefaults()
	var out []Rule
	allow := func(who string, write bool, topics ...string) {
		for _, name := range topics {
			if who != "" {
				out = append(out, Rule{Principal: who, Name: name, Write: write})
			}
		}
	}
	allow(p.Sidecar, true, t.Usage, t.Status)
	allow(p.Sidecar, false, t.Decisions, t.Policies)
	allow(p.Aggregator, true, t.Usage, t.Decisions, t.Policies, t.Status)
	allow(p.Aggregator, false, t.Usage, t.Decisions, t.Policies, t.Status)
	allow(p.Controller, true, t.Policies)
	allow(p.Controller, false, t.Policies, t.Status)
	allow(p.CLI, true, t.Policies)
	allow(p.CLI, false, t.Policies, t.Status)
	if p.Aggregator != "" && p.Group != "" {
		out = append(out, Rule{Principal: p.Aggregator, Group: true, Name: p.Group})
	}
	return out
}

// EnsureACLs adds the rules of p to the cluster's; it takes none away. Rules that are there already
// stay. It returns the rules added, or that would be with dryRun.
func (c *Client) EnsureACLs(ctx context.Context, t Topics, p Principals, dryRun bool) ([]Rule, error) {
	rules := p.Rules(t)
	if dryRun {
		return rules, nil
	}
	err := c.admin(ctx, func(a sarama.ClusterAdmin) error { return createACLs(a, rules) })
	if err != nil {
		return nil, fmt.Errorf("set the ACLs (does the cluster have an authorizer, and may this user alter it?): %w", err)
	}
	return rules, nil
}

// createACLs asks the controller itself: the administrator's own call drops what is wrong with a rule.
func createACLs(a sarama.ClusterAdmin, rules []Rule) error {
	req := &sarama.CreateAclsRequest{Version: 1}
	for _, r := range rules {
		req.AclCreations = append(req.AclCreations, r.creation())
	}
	b, err := a.Controller()
	if err != nil {
		return err
	}
	answer, err := b.CreateAcls(req)
	if err != nil {
		return err
	}
	for i, one := range answer.AclCreationResponses {
		if one.Err != sarama.ErrNoError && i < len(rules) {
			return fmt.Errorf("%v: %w", rules[i], one.Err)
		}
	}
	return nil
}

// creation: reading and writing each imply describing.
func (r Rule) creation() *sarama.AclCreation {
	out := &sarama.AclCreation{
		Resource: sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: r.Name, ResourcePatternType: sarama.AclPatternLiteral},
		Acl:      sarama.Acl{Principal: r.Principal, Host: "*", Operation: sarama.AclOperationRead, PermissionType: sarama.AclPermissionAllow},
	}
	if r.Group {
		out.ResourceType = sarama.AclResourceGroup
	}
	if r.Write {
		out.Operation = sarama.AclOperationWrite
	}
	return out
}
