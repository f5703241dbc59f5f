package policytopic

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

func TestInstallation(t *testing.T) {
	have := &wirev1.Installation{Partitions: 8, KeyFingerprint: 7, UsageTopicId: []byte("a"), DecisionsTopicId: []byte("b")}
	with := func(change func(*wirev1.Installation)) *wirev1.Installation {
		i := proto.Clone(have).(*wirev1.Installation)
		change(i)
		return i
	}
	for _, c := range []struct {
		name    string
		record  *wirev1.Installation
		write   bool
		refusal string
	}{
		{"none yet", nil, true, ""},
		{"the same", with(func(*wirev1.Installation) {}), false, ""},
		{"topic made anew", with(func(i *wirev1.Installation) { i.UsageTopicId = []byte("z") }), true, ""},
		{"another key", with(func(i *wirev1.Installation) { i.KeyFingerprint = 9 }), false, "identityKeyFile"},
		{"other partitions", with(func(i *wirev1.Installation) { i.Partitions = 16 }), false, "16 partitions"},
	} {
		write, err := CheckInstallation(c.record, have)
		if (write != nil) != c.write || (err != nil) != (c.refusal != "") {
			t.Errorf("%s: write %v, error %v", c.name, write, err)
		}
		if err != nil && (!errors.Is(err, ErrInstallation) || !strings.Contains(err.Error(), c.refusal)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
