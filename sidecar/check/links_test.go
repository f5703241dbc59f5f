package check

import (
	"os/exec"
	"strings"
	"testing"
)

// DESIGN 5: no log line and nothing that could wait on the check path: what decides links neither a logger,
// nor Kafka, nor a server.
func TestCase16TheCheckPathLinksNothingThatLogsOrWaits(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 20 {
		t.Fatalf("only %d packages: the test proves nothing", len(deps))
	}
	for _, pkg := range deps {
		for _, no := range []string{"go.uber.org/zap", "log/slog", "github.com/IBM/sarama", "google.golang.org/grpc",
			"github.com/weirproxy/weir/internal/bus", "github.com/weirproxy/weir/internal/log"} {
			if pkg == no || strings.HasPrefix(pkg, no+"/") {
				t.Errorf("the check path links %s", pkg)
			}
		}
	}
}
