package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// countingStore counts how often it is read.
type countingStore struct {
	store.Store
	views atomic.Int64
}

func (c *countingStore) View(ctx context.Context, read func(store.Tx) error) error {
	c.views.Add(1)
	return c.Store.View(ctx, read)
}

// bubble runs test in a bubble of fake time with a fleet of two cells.
func bubble(t *testing.T, test func(t *testing.T, s *Server, st *countingStore)) {
	synctest.Test(t, func(t *testing.T) {
		st := &countingStore{Store: memstore.New()}
		svc, err := control.Open(t.Context(), control.Config{Store: st, Signers: []routemap.Signer{signer()}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); svc.Run(ctx) }()
		s := New(Config{Service: svc, Open: true})
		fleetOf(t, s, 2)
		time.Sleep(time.Second)
		test(t, s, st)
		cancel()
		<-done
	})
}

// A poller is a router that waits for a map.
type poller struct {
	cancel context.CancelFunc
	done   chan struct{}
	rec    *httptest.ResponseRecorder
	took   time.Duration
}

func poll(s *Server, after cellway.Version, timeout string) *poller {
	ctx, cancel := context.WithCancel(context.Background())
	p := &poller{cancel, make(chan struct{}), httptest.NewRecorder(), 0}
	start := time.Now()
	go func() {
		defer close(p.done)
		s.ServeHTTP(p.rec, local("GET", "/v1/map/manifest?after="+after.String()+"&timeout="+timeout, nil).WithContext(ctx))
		p.took = time.Since(start)
	}()
	return p
}

func TestADrainReachesAHundredPollsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, st *countingStore) {
		now := s.service.Newest().Map.Version()
		var all []*poller
		for range 100 {
			all = append(all, poll(s, now, "30s"))
		}
		synctest.Wait()
		before := st.views.Load()
		time.Sleep(20 * time.Second)
		// The publisher looks at the store once a second; the hundred don't.
		if n := st.views.Load() - before; n > 25 {
			t.Errorf("waiting for 20 s read the store %d times", n)
		}
		drained := time.Now()
		must(t, s, nil, "POST", "/v1/cells/cell-001/drain", api.DrainRequest{Admit: 50})
		for i, p := range all {
			<-p.done
			man, err := routemap.DecodeManifest(p.rec.Body.Bytes())
			if p.rec.Code != 200 || err != nil || man.Version != now+1 {
				t.Fatalf("poll %d: %d %v %v", i, p.rec.Code, err, man)
			}
		}
		if d := time.Since(drained); d != 0 {
			t.Errorf("a drain waits %v for others", d)
		}
	})
}

func TestPollsEndInTimeAndWhenNobodyListens(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, _ *countingStore) {
		now := s.service.Newest().Map.Version()
		patient, quick, gone := poll(s, now, "30s"), poll(s, now, "2s"), poll(s, now, "5m")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		select {
		case <-quick.done:
			if quick.rec.Code != 204 || quick.took != 2*time.Second {
				t.Errorf("after %v: %d, want 204 after 2 s", quick.took, quick.rec.Code)
			}
		default:
			t.Error("a poll of 2 s waits for 10 s")
		}
		gone.cancel()
		synctest.Wait()
		select {
		case <-gone.done:
		default:
			t.Error("a poll goes on though its client has gone")
		}
		<-patient.done
		if patient.rec.Code != 204 || patient.took != 30*time.Second {
			t.Errorf("after %v: %d, want 204 after 30 s", patient.took, patient.rec.Code)
		}
	})
}

func TestStopEndsWhatWaitsAndNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, _ *countingStore) {
		now := s.service.Newest().Map.Version()
		p := poll(s, now, "5m")
		waits := make(chan *httptest.ResponseRecorder, 1)
		go func() {
			rec := httptest.NewRecorder()
			s.ServeHTTP(rec, local("POST", "/v1/cells/cell-001/drain?wait=routers&timeout=5m", api.DrainRequest{Admit: 50}))
			waits <- rec
		}()
		<-p.done // the drain's version
		p = poll(s, now+1, "5m")
		synctest.Wait()
		stopped := time.Now()
		s.Stop()
		<-p.done
		rec := <-waits
		if d := time.Since(stopped); d > time.Second {
			t.Errorf("it took %v", d)
		}
		if p.rec.Code != 204 {
			t.Errorf("the poll got %d", p.rec.Code)
		}
		if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"reached":false`) || !strings.Contains(rec.Body.String(), `"change_id"`) {
			t.Errorf("the write that waited got %d %s", rec.Code, rec.Body)
		}
		refused(t, s, 503, api.CodeNotReady, "GET", "/readyz", nil)
		must(t, s, nil, "GET", "/livez", nil)
		must(t, s, nil, "POST", "/v1/cells/cell-001/drain", api.DrainRequest{Admit: 40})
	})
}

func TestWaitingForRoutersEndsWhenTheyServeIt(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, _ *countingStore) {
		time.Sleep(31 * time.Second) // the control plane knows all routers by then
		serve := func(id string) {
			p := s.service.Newest()
			must(t, s, nil, "POST", "/v1/routers/"+id, api.RouterReport{Fleet: "shop", StartedAt: time.Now(), MapVersion: p.Map.Version(), MapDigest: p.Version.Manifest.Digest().String()})
		}
		serve("r1")
		serve("r2")
		waits := make(chan *httptest.ResponseRecorder, 1)
		go func() {
			rec := httptest.NewRecorder()
			s.ServeHTTP(rec, local("POST", "/v1/cells/cell-001/drain?wait=routers&timeout=60s", api.DrainRequest{Admit: 50}))
			waits <- rec
		}()
		time.Sleep(3 * time.Second)
		serve("r1")
		select {
		case <-waits:
			t.Error("answered though r2 serves the old map")
		default:
		}
		time.Sleep(3 * time.Second)
		serve("r2")
		var out api.CellChange
		rec := <-waits
		if decode(rec, &out); out.Waited == nil || !out.Waited.Reached || out.Waited.Routers != 2 || out.Waited.Version != s.service.Newest().Map.Version() {
			t.Errorf("answered %d %s", rec.Code, rec.Body)
		}
	})
}

func TestPartsAreReadOnceAndKeptForEver(t *testing.T) {
	raw := bytes.Repeat([]byte("tenant-0001 tenant-0002 "), 4096)
	digest := routemap.Digest(sha256.Sum256(raw))
	var loads atomic.Int64
	load := func() ([]byte, error) { loads.Add(1); time.Sleep(time.Millisecond); return raw, nil }
	c := newPartCache()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			p, err := c.get(digest, load)
			if err != nil || !bytes.Equal(p.raw, raw) {
				t.Errorf("got %d bytes, %v", len(p.raw), err)
			}
			p.gzipped()
		})
	}
	all.Wait()
	if loads.Load() != 1 {
		t.Errorf("read %d times", loads.Load())
	}
	p, _ := c.get(digest, load)
	ask := func(headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		rec := httptest.NewRecorder()
		p.serve(rec, r)
		return rec
	}
	plain := ask()
	if !bytes.Equal(plain.Body.Bytes(), raw) || plain.Header().Get("Content-Encoding") != "" || !strings.Contains(plain.Header().Get("Cache-Control"), "immutable") || plain.Header().Get("Vary") != "Accept-Encoding" {
		t.Errorf("plain: %v", plain.Header())
	}
	packed := ask("Accept-Encoding", "br, gzip;q=0.8")
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, raw) || packed.Header().Get("Content-Encoding") != "gzip" || packed.Header().Get("ETag") == plain.Header().Get("ETag") {
		t.Errorf("packed: %v %v", err, packed.Header())
	}
	if rec := ask("Accept-Encoding", "gzip;q=0"); rec.Header().Get("Content-Encoding") != "" {
		t.Error("packed for who refuses it")
	}
	if rec := ask("Range", "bytes=8-15", "Accept-Encoding", "gzip"); rec.Code != 206 || rec.Body.String() != string(raw[8:16]) {
		t.Errorf("range: %d %q", rec.Code, rec.Body)
	}
	if rec := ask("If-None-Match", plain.Header().Get("ETag")); rec.Code != 304 {
		t.Errorf("known already: %d", rec.Code)
	}
}

func TestPartsThatCantBeReadAreTriedAgain(t *testing.T) {
	c := newPartCache()
	digest := routemap.Digest{1}
	if _, err := c.get(digest, func() ([]byte, error) { return nil, cellway.ErrStoreDown }); !errors.Is(err, cellway.ErrStoreDown) {
		t.Errorf("got %v", err)
	}
	if p, err := c.get(digest, func() ([]byte, error) { return []byte("x"), nil }); err != nil || string(p.raw) != "x" {
		t.Errorf("the second time: %v", err)
	}
	// What was used longest ago goes first, and the newest never.
	c = newPartCache()
	for i := range 4 {
		if _, err := c.get(routemap.Digest{byte(i)}, func() ([]byte, error) { return make([]byte, mostPartBytes/2), nil }); err != nil {
			t.Fatal(err)
		}
	}
	if c.bytes > mostPartBytes || len(c.parts) != 2 || c.parts[routemap.Digest{3}] == nil {
		t.Errorf("%d bytes of %d parts are kept", c.bytes, len(c.parts))
	}
}

// brokenWriter takes a while and then fails, as a client that goes away does.
type brokenWriter struct {
	http.ResponseWriter
	left int
}

func (b *brokenWriter) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("broken pipe")
	}
	return b.ResponseWriter.Write(p)
}

func TestABackupThatBreaksOffIsNoWholeAnswer(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 2)
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("the handler ends with %v; a client would take half a backup for a whole one", p)
		}
	}()
	s.ServeHTTP(&brokenWriter{httptest.NewRecorder(), 1000}, local("GET", "/v1/backup", nil))
}

func TestTwoSignUpsCantTakeTheLastRoom(t *testing.T) {
	s, _ := newServer(t)
	must(t, s, nil, "PUT", "/v1/fleet", api.FleetSettings{Name: "shop", Mapping: "full"}, create...)
	in := cellIn(1)
	in.Capacity = api.Vector{"tenants": 5}
	must(t, s, nil, "PUT", "/v1/cells/cell-001", in, create...)
	codes := together(20, func(i int) int {
		return ask(t, s, "POST", "/v1/tenants", api.TenantCreation{ID: cellway.TenantID(fmt.Sprintf("t%d", i))}, "Idempotency-Key", fmt.Sprint("k", i)).Code
	})
	if codes[201] != 5 || codes[409] != 15 {
		t.Errorf("answers %v, want 5 of 201 and 15 of 409", codes)
	}
	var c api.Cell
	must(t, s, &c, "GET", "/v1/cells/cell-001", nil)
	if c.Tenants != 5 || c.Reserved["tenants"] != 5 {
		t.Errorf("the cell has %d tenants, reserved %v", c.Tenants, c.Reserved)
	}
}

func TestOneTenantSignedUpAtOnceIsInOneCell(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 4)
	var mu sync.Mutex
	cells := map[cellway.CellID]int{}
	codes := together(20, func(i int) int {
		// Ten callers, each of whom asks twice.
		rec := ask(t, s, "POST", "/v1/tenants", api.TenantCreation{ID: "acme"}, "Idempotency-Key", fmt.Sprint("k", i%10))
		if rec.Code < 300 {
			var out api.TenantChange
			decode(rec, &out)
			mu.Lock()
			cells[out.Cell]++
			mu.Unlock()
		}
		return rec.Code
	})
	if len(cells) != 1 || codes[201] != 2 || codes[409] != 18 {
		t.Errorf("answers %v, cells %v, want one cell and the two askings of one caller", codes, cells)
	}
}

func decode(rec *httptest.ResponseRecorder, out any) {
	if err := json.Unmarshal(rec.Body.Bytes(), out); err != nil {
		panic(err)
	}
}

// together calls f n times at once and counts its answers.
func together(n int, f func(i int) int) map[int]int {
	var mu sync.Mutex
	var all sync.WaitGroup
	got := map[int]int{}
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			code := f(i)
			mu.Lock()
			got[code]++
			mu.Unlock()
		})
	}
	close(start)
	all.Wait()
	return got
}
