package content

import (
	"testing"

	"github.com/weirproxy/weir/sidecar/match"
)

func TestGRPCCallersAreKnownByTheirContentType(t *testing.T) {
	for contentType, want := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "application/grpc;x=1": true,
		"application/grpc-web": false, "application/json": false, "": false,
	} {
		joined := match.Request{Headers: match.Headers{Joined: map[string]string{"content-type": contentType, "origin": "o"}}}
		raw := match.Request{Headers: match.Headers{Raw: []match.Header{{Name: "content-type", Value: contentType}, {Name: "origin", Value: "o"}}}}
		if CallerOf(&joined) != (Caller{"o", want}) || CallerOf(&raw) != (Caller{"o", want}) {
			t.Errorf("%q: want %v", contentType, want)
		}
	}
}
