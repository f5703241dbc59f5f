package partition

import (
	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

func unmarshalClaim(b []byte, c *wirev1.Claim) error {
	if err := proto.Unmarshal(b, c); err != nil {
		return errMalformed
	}
	return nil
}
