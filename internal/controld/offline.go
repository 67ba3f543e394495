package controld

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/routemap"
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
		return usageError{errors.New("name the backup with --from FILE")}
	case cfg.Store == Memory:
		return usageError{errors.New("a store in memory can't be restored; name a file with --store")}
	}
	if err := Restore(ctx, from, cfg); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "store %s restored from %s\n", cfg.Store, from)
	fmt.Fprint(p.out, "nothing but drains is accepted until the newest map is confirmed:\n"+
		"  1. start cellway-control\n"+
		"  2. cellway router list      what routers serve\n"+
		"  3. cellway map status       the newest map of all, and its digest\n"+
		"  4. cellway restore confirm  to go on from there\n")
	return nil
}

// Restore makes cfg.Store, of which nothing may exist, from a backup. What is
// published from it goes on in a higher incarnation.
func Restore(ctx context.Context, from string, cfg Config) (err error) {
	if err := sqlitestore.Vacant(cfg.Store); err != nil {
		return err
	}
	backup, err := os.Open(from)
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

// token makes a token in the store itself, for a control plane that nobody has
// a token of yet.
func (p *program) token(ctx context.Context, args []string) error {
	var name, role string
	var expires time.Duration
	cfg, err := p.parse("token", args, func(fs *flag.FlagSet) {
		fs.StringVar(&name, "name", "", "whose it is; the journal names it")
		fs.StringVar(&role, "role", string(control.Admin), "viewer, operator, admin, router or cell")
		fs.DurationVar(&expires, "expires", 0, "how long it is good for, as in 2160h; 0: for ever")
	})
	switch {
	case err != nil:
		return err
	case name == "":
		return usageError{errors.New("say whose token it is with --name NAME")}
	case expires < 0:
		return usageError{fmt.Errorf("expires is %v; give a time from now, as in 2160h", expires)}
	case cfg.Store == Memory:
		return usageError{errors.New("a store in memory is in another process; name a file with --store, or use \"cellway token create\"")}
	}
	r, err := control.ParseRole(role)
	if err != nil {
		return usageError{err}
	}
	st, err := sqlitestore.Open(ctx, cfg.Store, sqlitestore.Options{Log: cfg.log()})
	if err != nil {
		return err
	}
	// Nothing is published here, so nothing is signed by this key.
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	svc, err := control.Open(ctx, control.Config{Store: st, Signers: []routemap.Signer{routemap.LocalSigner(private)}, Log: cfg.log()})
	if err != nil {
		return errors.Join(err, st.Close())
	}
	var until time.Time
	if expires > 0 {
		until = time.Now().Add(expires)
	}
	t, secret, err := svc.CreateToken(ctx, control.Call{Who: who(), Reason: "made on the machine of the control plane"}, name, r, until)
	if err = errors.Join(err, st.Close()); err != nil {
		return err
	}
	fmt.Fprintf(p.err, "token %s for %s (%s); this is the only time it is shown\n", t.ID, t.Name, t.Role)
	fmt.Fprintln(p.out, secret)
	return nil
}
