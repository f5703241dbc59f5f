package policy

import (
	"fmt"
	"strings"
)

// String returns origin/namespace/name.
func (k Key) String() string { return k.Origin + "/" + k.Namespace + "/" + k.Name }

// ParseKey reads what String wrote.
func ParseKey(s string) (Key, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 || originRank(parts[0]) > 2 || !isLabel(parts[1]) || !isName(parts[2]) {
		return Key{}, fmt.Errorf("policy key %q: want origin/namespace/name with origin kube, file or cli", clip(s))
	}
	return Key{Origin: parts[0], Namespace: parts[1], Name: parts[2]}, nil
}
