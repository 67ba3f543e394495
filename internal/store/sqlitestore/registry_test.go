package sqlitestore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/shuffle"
	"github.com/cellway/cellway/shuffle/registrytest"
)

// openRegistry opens the registry at path, makes it if need be, and closes it at
// the end of the test.
func openRegistry(t testing.TB, path string) *sqlitestore.Registry {
	t.Helper()
	r, err := sqlitestore.OpenRegistry(t.Context(), path, sqlitestore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestRegistryContract(t *testing.T) {
	var paths sync.Map // by registry
	at := func(t *testing.T, path string) shuffle.RegistryStore {
		r := openRegistry(t, path)
		paths.Store(r, path)
		return r
	}
	again := func(t *testing.T, s shuffle.RegistryStore) shuffle.RegistryStore {
		path, _ := paths.Load(s)
		return at(t, path.(string))
	}
	registrytest.Run(t, registrytest.Maker{
		Open:  func(t *testing.T) shuffle.RegistryStore { return at(t, filepath.Join(t.TempDir(), "hands.db")) },
		Again: again,
		Reopen: func(t *testing.T, s shuffle.RegistryStore) shuffle.RegistryStore {
			if err := s.(*sqlitestore.Registry).Close(); err != nil {
				t.Fatal(err)
			}
			return again(t, s)
		},
	})
}

// crowded returns workers with which hands crowd: at most 140 of 4.
func crowded() (*shuffle.Snapshot, error) {
	cfg := shuffle.Config{Salt: "processes", Size: 4}
	for i := range 16 {
		cfg.Workers = append(cfg.Workers, shuffle.Worker{ID: fmt.Sprint("w-", i), Weight: 1})
	}
	return shuffle.NewSnapshot(cfg)
}

// signUp plays a process that deals hands and says which, until none is left.
func signUp(ctx context.Context) error {
	s, err := crowded()
	if err != nil {
		return err
	}
	store, err := sqlitestore.OpenRegistry(ctx, os.Getenv(pathEnv), sqlitestore.Options{Create: true})
	if err != nil {
		return err
	}
	r, err := shuffle.NewRegistry(ctx, shuffle.RegistryConfig{Store: store, Overlap: 2})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		h, err := r.Deal(ctx, s, fmt.Sprintf("tenant-%s-%d", os.Getenv(seedEnv), i))
		if errors.Is(err, shuffle.ErrExhausted) {
			return store.Close()
		}
		if err != nil {
			return err
		}
		fmt.Println(h.Tenant, strings.Join(h.Members, " "))
	}
}

// Processes that share a file, one of them killed at work, never let two tenants
// overlap too much, and what they acknowledged is there.
func TestProcessesShareARegistry(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hands.db")
	var mu sync.Mutex
	acked := map[string]string{}
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), roleEnv+"=sign up", pathEnv+"="+path, seedEnv+"="+strconv.Itoa(i))
			var said strings.Builder
			child.Stderr = &said
			out, err := child.StdoutPipe()
			if err == nil {
				err = child.Start()
			}
			if err != nil {
				t.Error(err)
				return
			}
			killed := false
			for lines := bufio.NewScanner(out); lines.Scan(); {
				tenant, members, ok := strings.Cut(lines.Text(), " ")
				if !ok {
					continue
				}
				mu.Lock()
				acked[tenant] = members
				enough := len(acked) > 20
				mu.Unlock()
				if i == 0 && enough && !killed {
					killed = child.Process.Kill() == nil
				}
			}
			if err := child.Wait(); !killed && err != nil {
				t.Errorf("process %d: %v, %s", i, err, said.String())
			}
		})
	}
	wg.Wait()
	r := openRegistry(t, path)
	var list []shuffle.Holding
	for h, err := range r.Holdings(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range list {
			shared := 0
			for _, w := range h.Members {
				if slices.Contains(other.Members, w) {
					shared++
				}
			}
			if shared > 2 {
				t.Errorf("%q and %q share %d", h.Tenant, other.Tenant, shared)
			}
		}
		list = append(list, h)
		if members, told := acked[h.Tenant]; told && members != strings.Join(h.Members, " ") {
			t.Errorf("%q holds %v; it was told %s", h.Tenant, h.Members, members)
		}
		delete(acked, h.Tenant)
	}
	if len(acked) > 0 {
		t.Errorf("acknowledged and lost: %v", acked)
	}
	if len(list) < 80 {
		t.Errorf("%d hold hands when none is left", len(list))
	}
}

// A registry is no store of the control plane, and the other way round.
func TestFilesAreNotMixedUp(t *testing.T) {
	dir := t.TempDir()
	hands, fleet := filepath.Join(dir, "hands.db"), filepath.Join(dir, "fleet.db")
	if err := open(t, fleet).Close(); err != nil {
		t.Fatal(err)
	}
	if err := openRegistry(t, hands).Close(); err != nil {
		t.Fatal(err)
	}
	_, err := sqlitestore.OpenRegistry(t.Context(), fleet, sqlitestore.Options{Create: true})
	if !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), "a registry of Cellway") {
		t.Errorf("a store opened as a registry: %v", err)
	}
	_, err = sqlitestore.Open(t.Context(), hands, sqlitestore.Options{Create: true})
	if !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), "a store of Cellway") {
		t.Errorf("a registry opened as a store: %v", err)
	}
	_, err = sqlitestore.OpenRegistry(t.Context(), filepath.Join(dir, "none.db"), sqlitestore.Options{})
	if !errors.Is(err, cellway.ErrNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// What somebody changed in the file is found when it is opened, or read.
func TestDamagedRegistryIsRefused(t *testing.T) {
	for _, damage := range []string{
		`UPDATE holdings SET members = '"w-1"' WHERE tenant = CAST('tenant-3' AS BLOB)`,
		`UPDATE holdings SET revision = revision + 1000`,
		`UPDATE holdings SET tenant = CAST('other' AS BLOB) WHERE tenant = CAST('tenant-3' AS BLOB)`,
		`DELETE FROM claims WHERE tenant = CAST('tenant-3' AS BLOB)`,
		`DELETE FROM holdings WHERE tenant = CAST('tenant-3' AS BLOB)`,
		`UPDATE claims SET tenant = CAST('tenant-4' AS BLOB) WHERE tenant = CAST('tenant-3' AS BLOB)`,
		`UPDATE registry SET last = 2`,
		`DELETE FROM registry`,
	} {
		path := filepath.Join(t.TempDir(), "hands.db")
		store := openRegistry(t, path)
		s, err := crowded()
		if err != nil {
			t.Fatal(err)
		}
		r, err := shuffle.NewRegistry(t.Context(), shuffle.RegistryConfig{Store: store, Overlap: 2})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if _, err := r.Deal(t.Context(), s, fmt.Sprint("tenant-", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		script(t, path, damage)
		_, err = sqlitestore.OpenRegistry(t.Context(), path, sqlitestore.Options{})
		if !errors.Is(err, cellway.ErrStoreDown) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: error is %v, want damaged", damage, err)
		}
	}
}

func TestClosedRegistryAnswersNothing(t *testing.T) {
	r := openRegistry(t, filepath.Join(t.TempDir(), "hands.db"))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := r.Reserve(t.Context(), shuffle.Holding{Tenant: "a"}, nil)
	if !errors.Is(err, cellway.ErrStoreDown) {
		t.Errorf("reserve after close: %v", err)
	}
	if _, err := shuffle.NewRegistry(t.Context(), shuffle.RegistryConfig{Store: r}); !errors.Is(err, shuffle.ErrStore) || !errors.Is(err, cellway.ErrStoreDown) {
		t.Errorf("registry over a closed store: %v", err)
	}
	for _, err := range r.Holdings(t.Context()) {
		if !errors.Is(err, cellway.ErrStoreDown) {
			t.Errorf("holdings after close: %v", err)
		}
	}
}

// BenchmarkRegistryAccept deals hands of 4 of 2,048 workers, at most 2 shared,
// into a file; each is synced to the disk before it counts.
func BenchmarkRegistryAccept(b *testing.B) {
	cfg := shuffle.Config{Salt: "bench", Size: 4}
	for i := range 2048 {
		cfg.Workers = append(cfg.Workers, shuffle.Worker{ID: fmt.Sprint("w-", i), Weight: 1})
	}
	s, err := shuffle.NewSnapshot(cfg)
	if err != nil {
		b.Fatal(err)
	}
	r, err := shuffle.NewRegistry(b.Context(), shuffle.RegistryConfig{Store: openRegistry(b, filepath.Join(b.TempDir(), "hands.db")), Overlap: 2})
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if _, err := r.Deal(b.Context(), s, fmt.Sprint("tenant-", i)); err != nil {
			b.Fatal(err)
		}
	}
}
