package agent

import (
	"maps"
	"slices"
)

// reasons are those in force, one text a code. The zero value has none. Not safe for concurrent use.
type reasons struct{ texts map[string]string }

func (r *reasons) set(code, text string) {
	if r.texts == nil {
		r.texts = map[string]string{}
	}
	r.texts[code] = text
}

func (r *reasons) clear(code string) { delete(r.texts, code) }

// setOrClear sets a reason, or clears it where there is no text.
func (r *reasons) setOrClear(code, text string) {
	if text == "" {
		r.clear(code)
		return
	}
	r.set(code, text)
}

// list returns them in the order of their codes.
func (r *reasons) list() []Reason {
	var out []Reason
	for _, code := range slices.Sorted(maps.Keys(r.texts)) {
		out = append(out, Reason{code, r.texts[code]})
	}
	return out
}
