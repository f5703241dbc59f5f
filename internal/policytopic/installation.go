package policytopic

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// ErrInstallation is wrapped where this program does not fit the installation that the topic names.
var ErrInstallation = errors.New("this program does not fit the installation")

// CheckInstallation compares what this program has with the installation's record. It returns the
// record to write: have, where there is none or where topics were made anew since; else nil.
// Another number of partitions or another identity key is refused.
func CheckInstallation(record, have *wirev1.Installation) (write *wirev1.Installation, err error) {
	switch {
	case record == nil:
		return have, nil
	case record.KeyFingerprint != have.KeyFingerprint:
		return nil, fmt.Errorf("%w: it has the identity key with fingerprint %08x, this program's has %08x; give it the identityKeyFile that every other program has",
			ErrInstallation, record.KeyFingerprint, have.KeyFingerprint)
	case record.Partitions != have.Partitions:
		return nil, fmt.Errorf("%w: it has %d partitions, the topic of usage has %d; targets would move to other partitions and lose their counts. Make the topics with %d partitions again, or delete the record %q of the policy topic to begin a new installation",
			ErrInstallation, record.Partitions, have.Partitions, record.Partitions, InstallationKey)
	case !bytes.Equal(record.UsageTopicId, have.UsageTopicId) || !bytes.Equal(record.DecisionsTopicId, have.DecisionsTopicId):
		return have, nil
	}
	return nil, nil
}

// InstallationValue is the record's value.
func InstallationValue(i *wirev1.Installation) ([]byte, error) {
	return proto.Marshal(&wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Installation{Installation: i}})
}
