package version

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestWhatGoRecordedIsUsedWithoutAStamp(t *testing.T) {
	setting := func(kv ...string) (s []debug.BuildSetting) {
		for i := 0; i < len(kv); i += 2 {
			s = append(s, debug.BuildSetting{Key: kv[i], Value: kv[i+1]})
		}
		return s
	}
	const sha = "0123456789abcdef0123456789abcdef01234567"
	for name, tt := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"installed by version": {debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3"},
		"built in a checkout":  {debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: setting("vcs.revision", sha)}, sha[:12]},
		"changed checkout":     {debug.BuildInfo{Settings: setting("vcs.revision", sha, "vcs.modified", "true")}, sha[:12] + "-dirty"},
		"nothing known":        {debug.BuildInfo{}, "unknown"},
	} {
		if got := fromBuild(&tt.info); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestLineNamesTheProgram(t *testing.T) {
	if got := Line("weir"); !strings.HasPrefix(got, "weir ") || len(strings.Fields(got)) != 4 {
		t.Errorf("Line = %q", got)
	}
}
