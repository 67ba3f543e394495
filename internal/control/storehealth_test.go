package control_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// A fullDisk is a store that, while it is full, lets everything pass but the end
// of what has written something.
type fullDisk struct {
	control.Store
	full atomic.Bool
}

var errFull = fmt.Errorf("the disk is full: %w", cellway.ErrStoreDown)

func (f *fullDisk) Update(ctx context.Context, write func(store.Tx) error) error {
	return f.Store.Update(ctx, func(tx store.Tx) error {
		end := func() (n uint64) { n, _ = tx.LogEnd("journal"); return n }
		was, routers := end(), count(tx)
		if err := write(tx); err != nil {
			return err
		}
		if f.full.Load() && (end() != was || count(tx) != routers) {
			return errFull
		}
		return nil
	})
}

// count adds up the revisions of what a control plane writes without a line in
// the journal.
func count(tx store.Tx) (sum cellway.Revision) {
	for _, kind := range []string{"head", "router", "version", "pointer"} {
		recs, _ := tx.List(kind, "", 1000)
		for _, r := range recs {
			sum += r.Revision
		}
	}
	return sum
}

func (f *fullDisk) PutBlob(ctx context.Context, digest [32]byte, blob []byte) error {
	if f.full.Load() {
		return errFull
	}
	return f.Store.PutBlob(ctx, digest, blob)
}

func (f *fullDisk) Backup(ctx context.Context, w io.Writer) error {
	if f.full.Load() {
		return errFull
	}
	return f.Store.Backup(ctx, w)
}

// A write that a full disk refused is an alarm until one has succeeded, however
// much else goes on meanwhile, and ends by itself when there is room.
func TestFullDiskIsAnAlarmUntilAWriteSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &fullDisk{Store: memstore.New()}
		s := open(t, st)
		fleet(t, s, routemap.Settings{}, 2)
		if err := s.Report(t.Context(), "r1", control.Report{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		st.full.Store(true)
		if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme"}, 0); !errors.Is(err, cellway.ErrStoreDown) {
			t.Fatalf("a tenant on a full disk: %v", err)
		}
		since := time.Now()
		for i := range 30 {
			// What writes nothing passes, and shows nothing.
			if _, _, err := s.Drain(t.Context(), by, "cell-001", 100); err != nil {
				t.Fatal(err)
			}
			if err := s.Report(t.Context(), "stranger", control.Report{Leaving: true}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Tenants(t.Context(), "", "", "", 10); err != nil {
				t.Fatal(err)
			}
			if err := s.Report(t.Context(), "r1", control.Report{}); err != nil && !errors.Is(err, cellway.ErrStoreDown) {
				t.Fatal(err)
			}
			a := alarm(s, control.AlarmStore)
			if a == nil || a.Subject != "writes" || !a.Since.Equal(since) || s.Stats().StoreErrors == 0 {
				t.Fatalf("after %d reports: alarm %+v", i, a)
			}
			time.Sleep(7 * time.Second)
		}
		if trouble := s.StoreTrouble(); len(trouble) != 1 || !trouble["writes"].Equal(since) {
			t.Errorf("trouble %v", trouble)
		}
		st.full.Store(false)
		time.Sleep(11 * time.Second)
		if a := alarm(s, control.AlarmStore); a != nil {
			t.Errorf("alarm %+v though there is room", a)
		}
		register(t, s, "acme")
		time.Sleep(time.Second)
		agree(t, s)
	})
}

// Where only the parts of a version have no room, that is the store's trouble
// too, and so is a backup.
func TestPartsAndBackupsThatFailAreAlarmsOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &partless{fullDisk{Store: memstore.New()}}
		s := open(t, st)
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		st.full.Store(true)
		if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		if err := s.Backup(t.Context(), io.Discard); !errors.Is(err, cellway.ErrStoreDown) {
			t.Errorf("backup: %v", err)
		}
		if trouble := s.StoreTrouble(); trouble["writes"].IsZero() || trouble["backups"].IsZero() {
			t.Errorf("trouble %v", trouble)
		}
		st.full.Store(false)
		time.Sleep(11 * time.Second)
		if err := s.Backup(t.Context(), io.Discard); err != nil {
			t.Errorf("backup: %v", err)
		}
		if trouble := s.StoreTrouble(); len(trouble) > 0 {
			t.Errorf("trouble %v though there is room", trouble)
		}
	})
}

// A partless store is full for parts and backups only.
type partless struct{ fullDisk }

func (p *partless) Update(ctx context.Context, write func(store.Tx) error) error {
	return p.Store.Update(ctx, write)
}
