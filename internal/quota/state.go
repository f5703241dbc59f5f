package quota

// Field is one number of a counter's stored state. Values are absolute: writing one twice, or a newer one over an
// older, does no harm. Indices are the same in every version of weir; new ones may be added.
type Field struct {
	Index uint16
	Value uint64
}

const (
	fieldTotal   uint16 = 0
	fieldContent uint16 = 8 // the first one of the algorithm
)

// MaxFields is the most fields that Export or ExportAll append.
const MaxFields = 2 + windowSlots

// Export appends the fields that changed since the last Export. If they could not be written, call ExportAll
// the next time.
func (t *Total) Export(dst []Field) []Field { return t.export(dst, false) }

// ExportAll appends all fields, with those that were emptied.
func (t *Total) ExportAll(dst []Field) []Field { return t.export(dst, true) }

func (t *Total) export(dst []Field, all bool) []Field {
	if all || t.stateful {
		dst = append(dst, Field{fieldTotal, t.total})
	}
	t.stateful = false
	t.content.export(all, func(i uint16, v uint64) { dst = append(dst, Field{i, v}) })
	return dst
}

// lastMillis is the latest owner time that a stored field may bear (the year 4199): beyond it there is
// nothing but spoiled data, and arithmetic would overflow.
const lastMillis = Millis(1) << 46

// storedMillis is a stored owner time; false for one that cannot be.
func storedMillis(v uint64) (Millis, bool) { return Millis(v), v <= uint64(lastMillis) }

// Restore replaces the content with stored fields, in any order, and moves it on to now. Unknown and impossible
// fields are skipped. Call it before any Ingest that counts; what `last` an earlier one taught is kept.
func (t *Total) Restore(fields []Field, now Millis) {
	t.content = newContent(t.rule, min(t.now, now))
	for _, f := range fields {
		if f.Index == fieldTotal {
			t.total = f.Value
		} else {
			t.content.restore(f.Index, f.Value)
		}
	}
	t.now = max(t.now, now)
	t.content.advance(t.now)
	t.stateful, t.force, t.heir = false, true, true
}
