package policies

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/api/v1alpha1"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
)

// Record is one record to publish; Value nil deletes.
type Record struct {
	Key   policy.Key
	Value []byte
}

// NewRecord makes the record of a document under an origin, its secrets hashed.
func NewRecord(origin string, doc *v1alpha1.QuotaPolicy, keys wirev1.Keys) (Record, error) {
	key, msg, err := policy.Encode(origin, doc, keys, nil)
	if err != nil {
		return Record{}, err
	}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(
		&wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Policy{Policy: msg}})
	if err != nil {
		return Record{}, fmt.Errorf("encode %s: %w", key, err)
	}
	return Record{key, value}, nil
}

const (
	maxFiles    = 1000
	maxFileSize = 1 << 20
)

// readDir reads the policy files of a directory: name → content. Hidden names are skipped (a
// mounted ConfigMap keeps its versions there).
func readDir(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			continue
		}
		if info.Size() > maxFileSize || len(out) >= maxFiles {
			return nil, fmt.Errorf("%s: more than %d files, or a file above %d bytes; split them up", path, maxFiles, maxFileSize)
		}
		if out[path], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parsed is what a directory's files say.
type parsed struct {
	records map[policy.Key]Record
	errs    map[string]error // by file
}

func parseFiles(files map[string][]byte, keys wirev1.Keys) parsed {
	p := parsed{records: map[policy.Key]Record{}, errs: map[string]error{}}
	from := map[policy.Key]string{}
	for _, name := range sortedKeys(files) {
		docs, err := policy.Parse(name, files[name])
		if err != nil {
			p.errs[name] = err
			continue
		}
		for _, d := range docs {
			r, err := NewRecord(policy.OriginFile, d, keys)
			if other, dup := from[r.Key]; err == nil && dup {
				err = fmt.Errorf("%s: policy %s/%s is in %s already; keep one of them", name, r.Key.Namespace, r.Key.Name, other)
			}
			if err != nil {
				p.errs[name] = err
				continue
			}
			from[r.Key], p.records[r.Key] = name, r
		}
	}
	return p
}

func sortedKeys(m map[string][]byte) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// plan says what to publish so that the topic, whose values of origin file have these hashes, holds what
// the files say. While a file is bad nothing is deleted: what it said before stays in force.
func plan(p parsed, have map[policy.Key][sha256.Size]byte) []Record {
	var out []Record
	for k, r := range p.records {
		if h, ok := have[k]; !ok || h != sha256.Sum256(r.Value) {
			out = append(out, r)
		}
	}
	if len(p.errs) == 0 {
		for k := range have {
			if _, ok := p.records[k]; !ok {
				out = append(out, Record{Key: k})
			}
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return out
}
