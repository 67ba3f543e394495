package controld

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/internal/store/sqlitestore"
)

// restore makes a store from a backup. The store gets its name only when it is
// marked as restored: one that is not would publish what is old as if nothing
// had happened since.
func (p *program) restore(ctx context.Context, args []string) error {
	var from string
	cfg, err := p.parse("restore", args, func(fs *flag.FlagSet) {
		fs.StringVar(&from, "from", "", "the backup")
	})
	switch {
	case err != nil:
		return err
	case from == "":
		return boot.UsageError{Err: errors.New("name the backup with --from FILE")}
	case cfg.Store == Memory:
		return boot.UsageError{Err: errors.New("a store in memory can't be restored; name a file with --store")}
	}
	if err := Restore(ctx, from, cfg); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "store %s restored from %s\n", cfg.Store, from)
	fmt.Fprint(p.out, "nothing but drains is accepted until the newest map is confirmed:\n"+
		"  1. start cellway-control\n"+
		"  2. cellway router list      what routers serve\n"+
		"  3. cellway map status       the newest map, once routers had 30 seconds to report, and its digest\n"+
		"  4. cellway restore confirm  to go on from there\n"+
		"  5. cellway cell workers     for each cell whose gateways have their workers from here: list, look, apply\n")
	return nil
}

// Restore makes cfg.Store, of which nothing may exist, from a backup. What is
// published from it goes on in a higher incarnation.
func Restore(ctx context.Context, from string, cfg Config) (err error) {
	if err := sqlitestore.Vacant(cfg.Store); err != nil {
		return err
	}
	backup, _, err := regular.System().Open(from, os.O_RDONLY) // a pipe may be waited for without end
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer backup.Close()
	fresh := cfg.Store + ".restoring"
	clear := func() error {
		var errs []error
		for _, name := range []string{fresh, fresh + "-wal", fresh + "-shm", fresh + "-journal", fresh + ".new", fresh + ".lock"} {
			if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	// What is left of an attempt that was cut off is nobody's.
	if err := clear(); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, clear()) }()
	if err := sqlitestore.Restore(ctx, backup, fresh); err != nil {
		return fmt.Errorf("restore from %s: %w", from, err)
	}
	st, err := sqlitestore.Open(ctx, fresh, sqlitestore.Options{Log: cfg.log()})
	if err != nil {
		return fmt.Errorf("restore from %s: %w", from, err)
	}
	err = control.MarkRestored(ctx, st, filepath.Base(from), who())
	if err = errors.Join(err, st.Close()); err != nil {
		return fmt.Errorf("restore from %s: %w", from, err)
	}
	return sqlitestore.Install(fresh, cfg.Store)
}
