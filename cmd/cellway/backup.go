package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/cellway/cellway"
	"github.com/spf13/cobra"
)

func (a *app) backupCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "backup", Short: "write a consistent copy of the control plane's store", Args: exactly(),
		Long: `Write a consistent copy of the control plane's store, made while it works. The file has
mode 0600 and its name only when it is whole. Keep it away from the machine, with the
signing key: cellway-control restore makes a store of it.`,
		Example: "  cellway backup --out fleet-2026-11-30.db\n  cellway backup --out - | gzip > fleet.db.gz",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			if out == "-" {
				if terminal(a.out) {
					return usage("a backup is not for terminals; name a file with --out")
				}
				_, err := cl.Backup(cmd.Context(), a.out)
				return err
			}
			if _, err := os.Lstat(out); err == nil {
				return usage("%s is there already; a backup is not overwritten", out)
			}
			var n int64
			err = newFile(out, 0o600, func(w io.Writer) error {
				m := &meter{w: w}
				if terminal(a.err) {
					m.line = &line{to: a.err}
					defer m.line.erase()
				}
				n, err = cl.Backup(cmd.Context(), m)
				return err
			})
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s was made meanwhile; a backup is not overwritten: %w", out, cellway.ErrExists)
			}
			if err != nil {
				return fmt.Errorf("backup: %w", err)
			}
			return a.show(written{out, n}, func() { fmt.Fprintf(a.out, "%s: %s\n", out, size(uint64(n))) })
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write, or - for standard output")
	require(c, "out")
	return c
}

// A written file answers cellway backup and cellway map get.
type written struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// A meter tells somebody at a terminal how much has come.
type meter struct {
	w    io.Writer
	line *line // nil: nobody is there
	n    uint64
	last time.Time
}

// Write writes b and counts it.
func (m *meter) Write(b []byte) (int, error) {
	n, err := m.w.Write(b)
	m.n += uint64(n)
	if m.line != nil && time.Since(m.last) > 200*time.Millisecond {
		m.last = time.Now()
		m.line.draw(size(m.n))
	}
	return n, err
}
