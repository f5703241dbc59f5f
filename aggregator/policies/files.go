package policies

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/policytopic"
)

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
	records map[policy.Key]policytopic.Record
	errs    map[string]error // by file
}

func parseFiles(files map[string][]byte, keys wirev1.Keys) parsed {
	p := parsed{records: map[policy.Key]policytopic.Record{}, errs: map[string]error{}}
	from := map[policy.Key]string{}
	for _, name := range sortedKeys(files) {
		docs, err := policy.Parse(name, files[name])
		if err != nil {
			p.errs[name] = err
			continue
		}
		for _, d := range docs {
			r, err := policytopic.NewRecord(policytopic.Source{Origin: policy.OriginFile, Document: d}, keys)
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
func plan(p parsed, have map[policy.Key][sha256.Size]byte) []policytopic.Record {
	var out []policytopic.Record
	for k, r := range p.records {
		if h, ok := have[k]; !ok || h != sha256.Sum256(r.Value) {
			out = append(out, r)
		}
	}
	if len(p.errs) == 0 {
		for k := range have {
			if _, ok := p.records[k]; !ok {
				out = append(out, policytopic.Record{Key: k})
			}
		}
	}
	slices.SortFunc(out, func(a, b policytopic.Record) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return out
}
