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
	// (origin file, installation) and status (tombstones), is in the consumer group, and reads the
	// topics' settings (`weir-aggregator topics check`).
	Aggregator string
	// Controller writes policies and reads status and policies.
	Controller string
	// CLI (`weir apply`) writes and reads policies, and reads status.
	CLI string
	// Check (`weir check`) reads decisions, policies and status, and all topics' settings; it writes nothing.
	Check string
	// Group is the aggregators' consumer group.
	Group string
}

// Right is what may be done to a topic or a group. Reading and writing each include describing.
type Right uint8

// The rights that weir's programs need.
const (
	Read            Right = iota // its records; of a group: to be a member
	Write                        // its records
	Describe                     // its partitions and id
	DescribeConfigs              // its settings
)

// String is what the one who has it may do, for a person.
func (r Right) String() string {
	return [...]string{"read", "write", "describe", "describe the settings of"}[r]
}

func (r Right) operation() sarama.AclOperation {
	return [...]sarama.AclOperation{sarama.AclOperationRead, sarama.AclOperationWrite, sarama.AclOperationDescribe, sarama.AclOperationDescribeConfigs}[r]
}

// Rule is one right that a principal has.
type Rule struct {
	Principal string
	Right     Right
	Group     bool // Name is a consumer group; otherwise a topic
	Name      string
}

// String says the rule for a person.
func (r Rule) String() string {
	kind := "topic"
	if r.Group {
		kind = "group"
	}
	return fmt.Sprintf("%s may %s %s %s", r.Principal, r.Right, kind, r.Name)
}

// Rules are the least rights that each program needs.
func (p Principals) Rules(t Topics) []Rule {
	t = t.WithDefaults()
	var out []Rule
	allow := func(who string, right Right, topics ...string) {
		for _, name := range topics {
			if who != "" {
				out = append(out, Rule{Principal: who, Right: right, Name: name})
			}
		}
	}
	allow(p.Sidecar, Write, t.Usage, t.Status)
	allow(p.Sidecar, Read, t.Decisions, t.Policies)
	allow(p.Aggregator, Write, t.Usage, t.Decisions, t.Policies, t.Status)
	allow(p.Aggregator, Read, t.Usage, t.Decisions, t.Policies, t.Status)
	allow(p.Aggregator, DescribeConfigs, t.Usage, t.Decisions, t.Policies, t.Status)
	allow(p.Controller, Write, t.Policies)
	allow(p.Controller, Read, t.Policies, t.Status)
	allow(p.CLI, Write, t.Policies)
	allow(p.CLI, Read, t.Policies, t.Status)
	allow(p.Check, Read, t.Decisions, t.Policies, t.Status)
	allow(p.Check, Describe, t.Usage)
	allow(p.Check, DescribeConfigs, t.Usage, t.Decisions, t.Policies, t.Status)
	if p.Aggregator != "" && p.Group != "" {
		out = append(out, Rule{Principal: p.Aggregator, Right: Read, Group: true, Name: p.Group})
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

func (r Rule) creation() *sarama.AclCreation {
	out := &sarama.AclCreation{
		Resource: sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: r.Name, ResourcePatternType: sarama.AclPatternLiteral},
		Acl:      sarama.Acl{Principal: r.Principal, Host: "*", Operation: r.Right.operation(), PermissionType: sarama.AclPermissionAllow},
	}
	if r.Group {
		out.ResourceType = sarama.AclResourceGroup
	}
	return out
}

// TopicError is why one of several topics could not be asked about: what lacks where Err is a refusal.
type TopicError struct {
	Topic string
	Right Right // Describe or DescribeConfigs
	Err   error
}

// Error implements error.
func (e *TopicError) Error() string { return fmt.Sprintf("%v topic %s: %v", e.Right, e.Topic, e.Err) }

// Unwrap is Err.
func (e *TopicError) Unwrap() error { return e.Err }
