package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	lastGoodFormat = 1
	maxLastGood    = 64 << 20
)

// lastGood is the file of last good policies: what a sidecar enforces from its start, before Kafka
// answers. Values of secret client sources are in it as keyed hashes only, as they are on the wire.
type lastGood struct {
	Format int `json:"format"`
	// Fingerprint of the identity key that the hashes were made with.
	Fingerprint uint32        `json:"fingerprint"`
	Partitions  int32         `json:"partitions"`
	Policies    []savedPolicy `json:"policies"`
	// LivePods is n of each target, as headers said last.
	LivePods map[string]uint32 `json:"livePods,omitempty"`
}

// savedPolicy is a record of the policy topic: Value is a wire/v1 PolicyMessage.
type savedPolicy struct {
	Key     string `json:"key"`
	Version int64  `json:"version"`
	Value   []byte `json:"value"`
}

// loadLastGood reads the file; nil without an error where there is none.
func loadLastGood(path string, fingerprint uint32) (*lastGood, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no file is a value
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no file is a value
	}
	if err != nil {
		return nil, fmt.Errorf("last good policies: %w", err)
	}
	if info.Size() > maxLastGood {
		return nil, fmt.Errorf("last good policies: %s has %d bytes, more than any sidecar writes; delete it", path, info.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("last good policies: %w", err)
	}
	var l lastGood
	if err := json.Unmarshal(b, &l); err != nil {
		return nil, fmt.Errorf("last good policies: %s is damaged (%w); it is written anew once policies are read", path, err)
	}
	if l.Format != lastGoodFormat {
		return nil, fmt.Errorf("last good policies: %s has format %d, this program knows %d; it is written anew once policies are read", path, l.Format, lastGoodFormat)
	}
	if l.Fingerprint != fingerprint {
		return nil, fmt.Errorf("last good policies: %s was written under another identity key (%08x, this program has %08x); it is written anew once policies are read",
			path, l.Fingerprint, fingerprint)
	}
	return &l, nil
}

// saveLastGood replaces the file in one step: a crash leaves the old one or the new one.
func saveLastGood(path string, l *lastGood) error {
	l.Format = lastGoodFormat
	if err := replaceFile(path, l.write); err != nil {
		return fmt.Errorf("last good policies: %w; give the sidecar a directory it may write to, or none", err)
	}
	return nil
}

// savedAtOnce is how many policies are encoded without a rest between them: pieces says why.
const savedAtOnce = 128

// write encodes l as encoding/json does, policy by policy, so that neither its memory nor its time comes at once.
func (l *lastGood) write(out io.Writer) error {
	w := bufio.NewWriter(out)
	_, _ = fmt.Fprintf(w, `{"format":%d,"fingerprint":%d,"partitions":%d,"policies":[`, l.Format, l.Fingerprint, l.Partitions)
	for i := range l.Policies {
		if i > 0 {
			_ = w.WriteByte(',')
		}
		if i%savedAtOnce == savedAtOnce-1 {
			time.Sleep(rest)
		}
		if err := writeJSON(w, &l.Policies[i]); err != nil {
			return err
		}
	}
	_, _ = w.WriteString(`],"livePods":`)
	if err := writeJSON(w, l.LivePods); err != nil {
		return err
	}
	_ = w.WriteByte('}')
	return w.Flush() // it keeps the first error of the writer
}

func writeJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

func replaceFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
