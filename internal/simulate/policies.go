package simulate

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/api/v1alpha1"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// policies are the versions of the scenario's one policy.
type policies struct {
	keys    wirev1.Keys
	doc     v1alpha1.QuotaPolicy
	version int64
	record  []byte         // the newest version's
	policy  *policy.Policy // the same, compiled
	set     *policy.Set
	targets []string // canonical names
	// ownerSet is what aggregators have heard of.
	ownerSet *policy.Set
}

const (
	namespace  = "scenario"
	policyName = "scenario"
	policyKey  = policy.OriginFile + "/" + namespace + "/" + policyName
)

func newPolicies(s *scenario.Scenario, keys wirev1.Keys) (policies, error) {
	spec, err := clone(s.Policy)
	if err != nil {
		return policies{}, err
	}
	p := policies{keys: keys}
	p.doc.APIVersion, p.doc.Kind = v1alpha1.APIVersion, v1alpha1.Kind
	p.doc.Metadata = v1alpha1.Metadata{Name: policyName, Namespace: namespace}
	p.doc.Spec = *spec
	if len(spec.TargetRefs) == 0 {
		return policies{}, errors.New("the policy names no target")
	}
	for _, t := range spec.TargetRefs {
		p.targets = append(p.targets, policy.TargetName(namespace, t.Kind, t.Name))
	}
	if p.doc.Spec.Failure == nil {
		p.doc.Spec.Failure = &v1alpha1.Failure{}
	}
	f := p.doc.Spec.Failure
	if f.StaleAfter == nil {
		f.StaleAfter = &v1alpha1.Duration{Duration: s.Timing.StaleAfter}
	}
	if f.FallbackFloor == nil {
		floor := s.Timing.FallbackFloor
		f.FallbackFloor = &floor
	}
	err = p.publish()
	p.ownerSet = p.set
	return p, err
}

// publish makes the next version of the document as it stands.
func (p *policies) publish() error {
	key, encoded, err := policy.Encode(policy.OriginFile, &p.doc, p.keys, nil)
	if err != nil {
		return err
	}
	p.version++
	compiled, err := policy.Decode(key, p.version, encoded)
	if err != nil {
		return err
	}
	p.policy, p.set = compiled, policy.NewSet([]*policy.Policy{compiled})
	p.record, err = proto.Marshal(&wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Policy{Policy: encoded}})
	return err
}

// setLimit changes the amount of a limit's first rate.
func (p *policies) setLimit(name string, amount float64) error {
	for i := range p.doc.Spec.Limits {
		l := &p.doc.Spec.Limits[i]
		if name == "" || l.Name == name {
			if len(l.Rates) == 0 {
				break
			}
			l.Rates[0].Limit = int64(amount)
			return p.publish()
		}
	}
	return fmt.Errorf("limit %q is not one of the policy's", name)
}

// installation is the record of the policy topic that says how many partitions there are.
func (p *policies) installation() []byte {
	b, err := proto.Marshal(&wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Installation{Installation: &wirev1.Installation{
		Partitions: partitions, KeyFingerprint: p.keys.Fingerprint(),
	}}})
	if err != nil {
		return nil
	}
	return b
}

func clone(s *v1alpha1.QuotaPolicySpec) (*v1alpha1.QuotaPolicySpec, error) {
	if s == nil {
		return nil, errors.New("there is no policy")
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	out := new(v1alpha1.QuotaPolicySpec)
	return out, json.Unmarshal(b, out)
}
