package controld

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/routemap"
)

// A tokenWish is what the flags say of a token.
type tokenWish struct {
	name, role, routers, cells, reason string
	expires                            time.Duration
	out                                string // file for the secret; empty: standard output
}

func (w *tokenWish) flags(fs *flag.FlagSet) {
	fs.StringVar(&w.name, "name", "", "whose it is; the journal names it")
	fs.StringVar(&w.role, "role", string(control.Admin), "viewer, operator, admin, router or cell")
	fs.StringVar(&w.routers, "routers", "", "of a router's: the id that it may report as, or the beginning of ids, as in 'eu-*'; empty: any")
	fs.StringVar(&w.cells, "cells", "", "of a cell's: the id of the cell whose workers it may read, or the beginning of ids, as in 'eu-*'; empty: any")
	fs.DurationVar(&w.expires, "expires", 0, "how long it is good for, as in 2160h; 0: for ever")
	fs.StringVar(&w.reason, "reason", "made on the machine of the control plane", "why, for the journal")
	fs.StringVar(&w.out, "out", "", "file to write the secret to; empty: standard output")
}

// token makes a token in the store itself, for a control plane that nobody has
// a token of yet.
func (p *program) token(ctx context.Context, args []string) (err error) {
	var w tokenWish
	cfg, err := p.parse("token", args, w.flags)
	switch {
	case err != nil:
		return err
	case w.name == "":
		return boot.UsageError{Err: errors.New("say whose token it is with --name NAME")}
	case w.expires < 0:
		return boot.UsageError{Err: fmt.Errorf("expires is %v; give a time from now, as in 2160h", w.expires)}
	case cfg.Store == Memory:
		return boot.UsageError{Err: errors.New("a store in memory is in another process; name a file with --store, or use \"cellway token create\"")}
	}
	role, err := control.ParseRole(w.role)
	if err != nil {
		return boot.UsageError{Err: err}
	}
	if w.routers != "" && role != control.RouterIs {
		return boot.UsageError{Err: fmt.Errorf("routers is for the role router only, not %s", w.role)}
	}
	if w.cells != "" && role != control.CellIs {
		return boot.UsageError{Err: fmt.Errorf("cells is for the role cell only, not %s", w.role)}
	}
	if w.out == "" {
		t, secret, err := w.make(ctx, cfg, role)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.err, "token %s for %s (%s); this is the only time it is shown\n", t.ID, t.Name, t.Role)
		if _, err := fmt.Fprintln(p.out, secret); err != nil {
			return w.lost(t, err)
		}
		return nil
	}
	// Before anything happens: a secret that can't be kept is lost.
	file, err := os.OpenFile(w.out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	t, secret, err := w.make(ctx, cfg, role)
	if err != nil {
		return errors.Join(err, file.Close(), os.Remove(w.out))
	}
	_, err = fmt.Fprintln(file, secret)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(w.lost(t, err), os.Remove(w.out)) // half a secret would stand in the way of another
	}
	fmt.Fprintf(p.out, "token %s for %s (%s) is in %s\n", t.ID, t.Name, t.Role, w.out)
	return nil
}

func (w tokenWish) lost(t control.Token, err error) error {
	return fmt.Errorf("token %s was made, but its secret is lost (%w); delete it with \"cellway token delete\" and make another", t.ID, err)
}

func (w tokenWish) make(ctx context.Context, cfg Config, role control.Role) (t control.Token, secret string, err error) {
	st, err := sqlitestore.Open(ctx, cfg.Store, sqlitestore.Options{Log: cfg.log()})
	if err != nil {
		return t, "", err
	}
	defer func() {
		if cerr := st.Close(); cerr != nil {
			cfg.log().Warn("store not closed cleanly", "error", cerr) // what was written is there all the same
		}
	}()
	// Nothing is published here, so nothing is signed by this key.
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return t, "", err
	}
	svc, err := control.Open(ctx, control.Config{Store: st, Signers: []routemap.Signer{routemap.LocalSigner(private)}, Log: cfg.log()})
	if err != nil {
		return t, "", err
	}
	var until time.Time
	if w.expires > 0 {
		until = time.Now().Add(w.expires)
	}
	call := control.Call{Who: who(), Reason: w.reason}
	if w.routers != "" {
		return svc.CreateRouterToken(ctx, call, w.name, w.routers, until)
	}
	if w.cells != "" {
		return svc.CreateCellToken(ctx, call, w.name, w.cells, until)
	}
	return svc.CreateToken(ctx, call, w.name, role, until)
}
