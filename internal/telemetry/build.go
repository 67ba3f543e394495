package telemetry

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"
)

// A Build says which program this is.
type Build struct {
	Version  string // of the module, as v1.2.3; "devel" if it was built from a checkout
	Revision string // of the checkout, if known
	Modified bool   // the checkout had changes
	Go       string // version of the toolchain
}

// ReadBuild returns what the linker noted in this program.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{Version: "devel", Go: runtime.Version()}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) Build {
	b := Build{Version: info.Main.Version, Go: info.GoVersion}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String returns b on one line, as "v1.2.3 (0123456789ab, modified, go1.26.8)".
func (b Build) String() string {
	var in []string
	if b.Revision != "" {
		in = append(in, b.Revision[:min(12, len(b.Revision))])
	}
	if b.Modified {
		in = append(in, "modified")
	}
	in = append(in, cmp.Or(b.Go, "unknown toolchain"))
	return b.Version + " (" + strings.Join(in, ", ") + ")"
}
