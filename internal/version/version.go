// Package version says which build of weir this is.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is stamped by the linker (see the Makefile). Empty: what Go itself recorded is used.
var Version string

// Short is the version alone: the stamped one, else the module's or the commit's, else "unknown".
func Short() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return fromBuild(info)
}

// Line is one line for a person: program, version, Go's version and the platform.
func Line(program string) string {
	return fmt.Sprintf("%s %s %s %s/%s", program, Short(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func fromBuild(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if revision == "" {
		return "unknown"
	}
	return revision + dirty
}
