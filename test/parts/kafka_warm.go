package parts

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// kafkaWarm is what the first start of a broker on a machine leaves behind so
// that all later ones are quicker: an archive of loaded classes, and a
// formatted, empty data directory to copy. Together they take a start from
// about 5 s and two Java processes to 2 s and one. They lie beside the jars
// that they belong to; installing those anew removes them.
type kafkaWarm struct{ dir string }

// Files of a kafkaWarm. metaFile names the cluster; bootstrapFile holds the
// versions of Kafka's features.
const (
	archiveFile   = "classes.jsa"
	metaFile      = "meta.properties"
	bootstrapFile = "bootstrap.checkpoint"
)

// kafkaWarmed returns the kafkaWarm of the jars in libs and makes it if needed.
func kafkaWarmed(t T, libs string) kafkaWarm {
	t.Helper()
	warm := kafkaWarm{dir: filepath.Join(filepath.Dir(libs), "warm")}
	unlock, err := lock(warm.dir + ".lock")
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer unlock()
	if _, err := os.Stat(warm.dir); err == nil {
		return warm
	}
	if err := warm.make(t, libs); err != nil {
		t.Fatalf("prepare Kafka: %v", err)
	}
	return warm
}

// make formats a directory, and runs a broker on it once.
func (w kafkaWarm) make(t T, libs string) error {
	t.Helper()
	unfinished, err := os.MkdirTemp(filepath.Dir(w.dir), "warm-*.new")
	if err != nil {
		return err
	}
	defer os.RemoveAll(unfinished)
	archive := []string{"-Xlog:cds=error", "-XX:ArchiveClassesAtExit=" + filepath.Join(unfinished, archiveFile)}
	broker := startServer(t, kafkaPlan(t.TempDir(), KafkaOpts{}, func(data, props string) (*exec.Cmd, error) {
		format := kafkaJava(libs, KafkaOpts{}, nil, "kafka.tools.StorageTool", "format", "-t", newClusterID(), "-c", props)
		if out, err := format.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("format: %w: %s", err, out)
		}
		if err := copyFiles(unfinished, data, metaFile, bootstrapFile); err != nil {
			return nil, err
		}
		return kafkaJava(libs, KafkaOpts{}, archive, "kafka.Kafka", props), nil
	}))
	broker.Stop() // writes the archive
	return os.Rename(unfinished, w.dir)
}

func (w kafkaWarm) javaFlags() []string {
	archive := filepath.Join(w.dir, archiveFile)
	if _, err := os.Stat(archive); err != nil {
		return nil // this Java makes none
	}
	return []string{"-XX:SharedArchiveFile=" + archive, "-Xshare:auto", "-Xlog:cds=off"}
}

var clusterID = regexp.MustCompile(`(?m)^cluster\.id=.*$`)

// format makes data an empty broker's directory, with a cluster id of its own.
// One that has been formatted before is left as it is.
func (w kafkaWarm) format(data string) error {
	meta := filepath.Join(data, metaFile)
	if _, err := os.Stat(meta); err == nil {
		return nil
	}
	if err := copyFiles(data, w.dir, bootstrapFile); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(w.dir, metaFile))
	if err != nil {
		return err
	}
	text = clusterID.ReplaceAllLiteral(text, []byte("cluster.id="+newClusterID()))
	return os.WriteFile(meta, text, 0o644)
}

// newClusterID returns 16 random bytes as Kafka writes a UUID. The first bits
// are cleared: an id must not begin with a dash.
func newClusterID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[0] &= 0x3f
	return base64.RawURLEncoding.EncodeToString(id[:])
}
