package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/controld"
	"github.com/cellway/cellway/routemap"
	"github.com/spf13/cobra"
)

func (a *app) keyCommand() *cobra.Command {
	c := &cobra.Command{Use: "key", Aliases: []string{"keys"}, Short: "signing keys of maps, and the lines of a keyring", Example: "  cellway key new --out signing.pem\n  cellway key show signing.pem >> keyring"}
	var out string
	fresh := &cobra.Command{
		Use: "new", SuggestFor: []string{"create", "add"}, Short: "make a signing key, mode 0600, and print its line for the routers' keyrings", Args: exactly(), Example: "  cellway key new --out signing-2027.pem",
		RunE: func(*cobra.Command, []string) error {
			if a.dryRun {
				if err := vacant(out); err != nil {
					return err
				}
				return a.say(keyTry{out, true}, "dry run: nothing is written; %s would be made", out)
			}
			if err := controld.NewKeyFile(out, rand.Reader); err != nil {
				return err
			}
			return a.showKey(out, "trusted")
		},
	}
	fresh.Flags().StringVar(&out, "out", "", "file to write")
	fresh.Flags().BoolVar(&a.dryRun, "dry-run", false, "check that the file can be made, and make nothing")
	require(fresh, "out")
	var trust string
	show := &cobra.Command{
		Use: "show FILE", Short: "print the line of a signing key for the routers' keyrings", Args: exactly("FILE"),
		Example: "  cellway key show signing.pem >> keyring\n  cellway key show signing.pem --trust retired",
		RunE:    func(_ *cobra.Command, args []string) error { return a.showKey(args[0], trust) },
	}
	show.Flags().StringVar(&trust, "trust", "trusted", "trusted, retired (its old maps stay good) or revoked (nothing it signed is good)")
	complete(show, "trust", "trusted", "retired", "revoked")
	c.AddCommand(fresh, show)
	return c
}

// A keyTry answers a dry run of key new.
type keyTry struct {
	File   string `json:"file"`
	DryRun bool   `json:"dry_run"`
}

// vacant is an error if a file could not be made because its name is taken or
// its folder is not there.
func vacant(file string) error {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s is there already: %w", file, cellway.ErrExists)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	folder := filepath.Dir(file)
	if info, err := os.Stat(folder); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is not a folder: %w", folder, cellway.ErrInvalid)
	}
	return nil
}

// A keyLine answers key show and key new.
type keyLine struct {
	ID    routemap.KeyID `json:"id"`
	Trust string         `json:"trust"`
	Line  string         `json:"line"` // of a keyring
}

func (a *app) showKey(file, trust string) error {
	levels := map[string]routemap.Trust{"trusted": routemap.Trusted, "retired": routemap.Retired, "revoked": routemap.Revoked}
	level, ok := levels[trust]
	if !ok {
		return usage("--trust is %q; give trusted, retired or revoked", trust)
	}
	signer, err := controld.ReadKeyFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return mend(err, "check the path, or make a key with cellway key new --out FILE")
	}
	if err != nil {
		return err
	}
	line := routemap.Keyring{{Key: signer.Public(), Trust: level}}.Format()
	return a.show(keyLine{routemap.KeyIDOf(signer.Public()), trust, string(line[:len(line)-1])}, func() {
		a.out.Write(line)
	})
}
