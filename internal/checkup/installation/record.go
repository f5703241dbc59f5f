package installation

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/checkup"
	"github.com/weirproxy/weir/internal/identitykey"
)

const sameKey = "give every program the same identityKeyFile: one Secret for all in Kubernetes"

// installation is the check kafka.installation: the record by which programs know that they belong together.
func (c *Checks) installation(ctx context.Context) []checkup.Finding {
	p, err := c.kafka.policyFacts(ctx)
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Policies, mayRead, err)
	}
	m, err := c.kafka.topicsFacts(ctx)
	if err != nil {
		return c.kafka.cannot(c.kafka.names().Usage, mayDescribe, err)
	}
	fingerprint, err := c.fingerprint()
	if err != nil {
		return []checkup.Finding{checkup.Fail("name the installation's key file, or none", "%v", err)}
	}
	return judgeRecord(p.installation, &wirev1.Installation{
		Partitions: uint32(m.usage), KeyFingerprint: fingerprint, //nolint:gosec // not negative
		UsageTopicId: m.usageID[:], DecisionsTopicId: m.decisionsID[:],
	})
}

// fingerprint of the key that was given; 0: none was.
func (c *Checks) fingerprint() (uint32, error) {
	if c.cfg.KeyFile == "" {
		return 0, nil
	}
	keys, err := identitykey.Read(c.cfg.KeyFile)
	if err != nil {
		return 0, err
	}
	return keys.Fingerprint(), nil
}

// Fingerprint is that of the installation's identity key, as its record has it; false where that cannot be read.
func (c *Checks) Fingerprint(ctx context.Context) (uint32, bool) {
	p, err := c.kafka.policyFacts(ctx)
	if err != nil || p.installation == nil {
		return 0, false
	}
	return p.installation.KeyFingerprint, true
}

var errNoRecord = errors.New("there is no record of the installation: no aggregator has begun yet")

// judgeRecord compares the record with what is there. Fingerprint 0: no key was given.
func judgeRecord(record, have *wirev1.Installation) []checkup.Finding {
	if record == nil {
		return []checkup.Finding{checkup.Fail("start weir-aggregator: the owner of partition 0 writes it", "%v", errNoRecord)}
	}
	var out []checkup.Finding
	if have.KeyFingerprint != 0 && have.KeyFingerprint != record.KeyFingerprint {
		out = append(out, checkup.Fail(sameKey, "the installation has the identity key with fingerprint %08x, the file that was given %08x",
			record.KeyFingerprint, have.KeyFingerprint))
	}
	if have.Partitions != record.Partitions {
		out = append(out, checkup.Fail(fmt.Sprintf("make the topics with %d partitions again, or delete the record of the installation to begin a new one", record.Partitions),
			"the installation began with %d partitions, the topic of usage has %d", record.Partitions, have.Partitions))
	}
	if !bytes.Equal(record.UsageTopicId, have.UsageTopicId) || !bytes.Equal(record.DecisionsTopicId, have.DecisionsTopicId) {
		out = append(out, checkup.Warn("restart weir-aggregator, whose owner of partition 0 writes the record anew", "topics were made anew since the installation's record was written"))
	}
	compared := ""
	if have.KeyFingerprint == 0 {
		compared = " (no identityKeyFile was given to compare it with)"
	}
	return checkup.OrOkay(out, "%d partitions, identity key with fingerprint %08x%s", record.Partitions, record.KeyFingerprint, compared)
}
