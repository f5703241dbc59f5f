package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/weirproxy/weir/api/v1alpha1"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// SchemaVersion is the version of the documents that this program publishes and reads.
const SchemaVersion = 1

// HashValue returns the keyed hash under which a secret value of a client source leaves a pod and is
// published: what `weir hash` prints. name is the header's or claim's, "" for the other sources.
func HashValue(keys wirev1.Keys, kind SourceKind, name, value string) string {
	plain, _ := kind.Dimensions()
	return string(keys.AppendSecret(nil, plain, name, []byte(value)))
}

// HashSecrets returns a copy of a valid document that may be published: override values of secret
// sources are keyed hashes, labels and annotations (kubectl keeps whole documents there) are gone.
func HashSecrets(doc *v1alpha1.QuotaPolicy, keys wirev1.Keys) *v1alpha1.QuotaPolicy {
	out := *doc
	out.Metadata = v1alpha1.Metadata{Name: doc.Metadata.Name, Namespace: namespaceOf(doc)}
	out.Spec.Limits = append([]v1alpha1.Limit(nil), doc.Spec.Limits...)
	for i := range out.Spec.Limits {
		l := &out.Spec.Limits[i]
		l.Overrides = append([]v1alpha1.Override(nil), l.Overrides...)
		for j := range l.Overrides {
			clients := append([]v1alpha1.OverrideClient(nil), l.Overrides[j].Clients...)
			for k := range clients {
				hashSecret(&clients[k], doc.Spec.Client, keys)
			}
			l.Overrides[j].Clients = clients
		}
	}
	return &out
}

func hashSecret(c *v1alpha1.OverrideClient, sources []v1alpha1.ClientSource, keys wirev1.Keys) {
	if c.Value == "" || !isSecret(c, sources) {
		return
	}
	kind := sourceKind(c.Source)
	c.ValueHash, c.Value = HashValue(keys, kind, sourceName(c.Source, c.Name), c.Value), ""
}

// isSecret reports whether an override's value comes from a source whose values are secret.
func isSecret(c *v1alpha1.OverrideClient, sources []v1alpha1.ClientSource) bool {
	for i := range sources {
		s := &sources[i]
		if s.Source == c.Source && sourceName(s.Source, s.Name) == sourceName(c.Source, c.Name) {
			return s.Source == v1alpha1.SourceHeader && !s.Reveal
		}
	}
	return c.Source == v1alpha1.SourceHeader
}

// Marshal writes a document for wire/v1.Policy: JSON with the fields in the types' order, so that
// equal documents have equal bytes.
func Marshal(doc *v1alpha1.QuotaPolicy) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("write policy %s: %w", doc.Metadata.Name, err)
	}
	return escapeForYAML(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// escapeForYAML escapes the characters that JSON may hold as they are and YAML reads otherwise or
// refuses: Parse reads both by one parser.
func escapeForYAML(text []byte) []byte {
	if !slices.ContainsFunc(text, func(c byte) bool { return c >= 0x7f }) {
		return text
	}
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r >= 0x7f && r <= 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			out = fmt.Appendf(out, `\u%04x`, r)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// Encode makes the value of a record in weir.policies: the document with its secrets hashed, and
// the targets that its publisher resolved.
func Encode(origin string, doc *v1alpha1.QuotaPolicy, keys wirev1.Keys, resolved []*wirev1.ResolvedTarget) (Key, *wirev1.Policy, error) {
	public := HashSecrets(doc, keys)
	text, err := Marshal(public)
	if err != nil {
		return Key{}, nil, err
	}
	key := Key{Origin: origin, Namespace: public.Metadata.Namespace, Name: public.Metadata.Name}
	return key, &wirev1.Policy{
		SchemaVersion: SchemaVersion, Origin: origin, Namespace: key.Namespace, Name: key.Name,
		Document: text, Targets: resolved,
	}, nil
}

// Decode reads, validates and compiles a record of weir.policies. version is the record's offset.
func Decode(key Key, version int64, msg *wirev1.Policy) (*Policy, error) {
	switch v := msg.GetSchemaVersion(); {
	case v > SchemaVersion:
		return nil, fmt.Errorf("policy %s: schema version %d, this program knows %d; upgrade this program", key, v, SchemaVersion)
	case v == 0:
		return nil, fmt.Errorf("policy %s: no schema version; publish it anew", key)
	}
	doc, err := readRecord(key, msg.GetDocument())
	if err != nil {
		return nil, err
	}
	written := Key{Origin: msg.GetOrigin(), Namespace: namespaceOf(doc), Name: doc.Metadata.Name}
	if written != key {
		return nil, fmt.Errorf("policy %s: the record's document is %s; publish it anew", key, written)
	}
	if field, ok := plainSecret(doc); ok {
		return nil, fmt.Errorf("policy %s: %s is the plain value of a secret source; publish its keyed hash (weir hash), and change the secret", key, field)
	}
	p, err := compile(key, version, doc, resolvedTargets(msg.GetTargets()))
	if err != nil {
		return nil, err
	}
	p.Generation = msg.GetGeneration()
	return p, nil
}

func plainSecret(doc *v1alpha1.QuotaPolicy) (field string, found bool) {
	for i := range doc.Spec.Limits {
		for j, o := range doc.Spec.Limits[i].Overrides {
			for k := range o.Clients {
				if o.Clients[k].Value != "" && isSecret(&o.Clients[k], doc.Spec.Client) {
					return fmt.Sprintf("spec.limits[%d].overrides[%d].clients[%d].value", i, j, k), true
				}
			}
		}
	}
	return "", false
}

func resolvedTargets(in []*wirev1.ResolvedTarget) []Target {
	out := make([]Target, 0, len(in))
	for _, t := range in {
		target := Target{Name: t.GetTarget(), Selector: make(map[string]string)}
		for _, l := range t.GetSelector() {
			target.Selector[l.GetKey()] = l.GetValue()
		}
		out = append(out, target)
	}
	return out
}
