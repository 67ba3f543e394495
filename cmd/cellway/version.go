package main

import (
	"fmt"
	"runtime"

	"github.com/cellway/cellway/internal/telemetry"
	"github.com/spf13/cobra"
)

// A build is the version of this program for programs.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the checkout that it was built from
	Modified bool   `json:"modified,omitempty"` // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// version says which build this is.
func (a *app) version() error {
	b := telemetry.ReadBuild()
	return a.show(build{b.Version, b.Revision, b.Modified, b.Go, runtime.GOOS + "/" + runtime.GOARCH}, func() { fmt.Fprintln(a.out, "cellway", b) })
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "which build this is", Args: exactly(), Example: "  cellway version\n  cellway version -o json",
		RunE: func(*cobra.Command, []string) error { return a.version() },
	}
}
