package memory

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Only what cannot have changed since it was read from the file may be dropped.
func TestOnlyReadOnlyMappingsOfTheProgramAreTrimmed(t *testing.T) {
	const exe = "/usr/bin/weir-sidecar"
	for line, want := range map[string]bool{
		"00400000-00b94000 r-xp 00000000 fe:00 42                         " + exe:                true,
		"00b94000-014a8000 r--p 00794000 fe:00 42                         " + exe:                true,
		"014a8000-0152d000 rw-p 010a8000 fe:00 42                         " + exe:                false,
		"00b94000-014a8000 r--s 00794000 fe:00 42                         " + exe:                false,
		"00b94000-014a8000 ---p 00794000 fe:00 42                         " + exe:                false,
		"00b94000-014a8000 r--p 00794000 fe:00 42                         " + exe + " (deleted)": false,
		"00b94000-014a8000 r--p 00794000 fe:00 42                         /usr/lib/libc.so":      false,
		"7ffe0000-7ffe1000 r-xp 00000000 00:00 0                          [vdso]":                false,
		"zz-014a8000 r-xp 0 fe:00 42 " + exe:                                                     false,
		"014a8000-00b94000 r-xp 0 fe:00 42 " + exe:                                               false,
		"":  false,
		exe: false,
	} {
		if s, ok := readOnly(line, exe); ok != want {
			t.Errorf("%q: %v, %+v", line, ok, s)
		}
	}
}

// What was relocated and then protected is the process's own, though nobody can write to it any more.
func TestWhatTheFileDoesNotHoldIsNotTrimmed(t *testing.T) {
	const smaps = `00400000-00b94000 r-xp 00000000 fe:00 42 /bin/x
Size:               7760 kB
Rss:                7000 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
00b94000-014a8000 r--p 00794000 fe:00 42 /bin/x
Rss:                 400 kB
Anonymous:             4 kB
014a8000-0152d000 rw-p 010a8000 fe:00 42 /bin/x
Anonymous:             0 kB
0152d000-0162d000 rw-p 00000000 00:00 0
Anonymous:             0 kB
`
	if got := unwritten(strings.NewReader(smaps), "/bin/x"); len(got) != 1 || got[0] != (span{0x400000, 0xb94000}) {
		t.Errorf("%x", got)
	}
}

// The program goes on with pages that were dropped, and fewer are mapped.
func TestTrimLetsPagesGo(t *testing.T) {
	before := mapped(t)
	var pages trimmer
	pages.trim()
	after := mapped(t)
	if len(pages.spans) == 0 || after >= before {
		t.Errorf("%d spans; %d kB of files are mapped, before it was %d", len(pages.spans), after, before)
	}
	pages.trim()
}

// mapped is what is resident of mapped files, kB.
func mapped(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "RssFile:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
