package feed

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/routemap"
)

// openStore opens a store on d, as a start does.
func openOn(d disk, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := newStore(d, log)
	s.open()
	return s
}

// A history is versions as a router accepted them: two bases, each with
// overlays.
func history(t testing.TB) (p *publisher, all []*accepted) {
	p = newPublisher(t)
	for _, v := range []routemap.Version{p.base(), p.overlay(), p.overlay(), p.base(), p.overlay(), p.base()} {
		a := p.opened(v)
		a.at = time.Now().Add(-time.Duration(10-len(all)) * time.Hour)
		all = append(all, a)
	}
	return p, all
}

// play keeps every version in turn, with the marker as a feed writes it, and
// returns the sequence of the last one that was kept and of the last that was
// begun. It stops where the power is cut.
func play(s *Store, all []*accepted) (kept, begun uint32) {
	defer func() {
		if p := recover(); p != nil && p != any(powerCut{}) {
			panic(p)
		}
	}()
	for _, a := range all {
		begun = a.m.Version().Sequence()
		base, overlay := partsOf(a.m.Manifest())
		s.change(func(m *marker) { m.begin(base, overlay, false) })
		s.writeMarker()
		if s.keep(a) == nil {
			kept = begun
		}
		s.change(func(m *marker) { m.survive(&m.base) })
		s.writeMarker()
	}
	return kept, begun
}

// wantNewest opens what is left and fails unless there is a whole, verified map
// between those two.
func wantNewest(t *testing.T, d *memDisk, p *publisher, kept, begun uint32) *Store {
	t.Helper()
	s := openOn(d, nil)
	a, _ := s.best(p.ring(), "shop", nil)
	switch {
	case a == nil && kept == 0:
	case a == nil:
		t.Fatalf("no map on the disk, though %d was kept; there is %v", kept, nameList(d))
	default:
		if got := a.m.Version().Sequence(); got < kept || got > begun {
			t.Fatalf("the newest map is %d, kept was %d, begun %d", got, kept, begun)
		}
	}
	if st := s.trouble.status(); st.Count > 0 {
		t.Fatalf("after a power cut there is trouble: %s", st.Last)
	}
	return s
}

func nameList(d *memDisk) string { names, _ := d.List(); return strings.Join(names, " ") }

// writesOf counts the writes of a whole history.
func writesOf(all []*accepted) int {
	d := newMemDisk()
	play(openOn(d, nil), all)
	return d.writes
}

func TestPowerCutAtAnyWriteLeavesAWholeMap(t *testing.T) {
	p, all := history(t)
	n := writesOf(all)
	t.Logf("%d writes", n)
	seeds := 20
	if testing.Short() {
		seeds = 4
	}
	for at := 1; at <= n; at++ {
		for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
			d := newMemDisk()
			d.at, d.mode, d.cut = at, mode, true
			var kept, begun uint32
			func() {
				defer func() { _ = recover() }() // the cut may come while the store opens
				kept, begun = play(openOn(d, nil), all)
			}()
			for seed := range seeds {
				left := d.afterCut(rand.New(rand.NewPCG(uint64(at), uint64(seed))))
				t.Run(fmt.Sprintf("%d-%s-%d", at, mode, seed), func(t *testing.T) {
					s := wantNewest(t, left, p, kept, begun)
					// And life goes on from there.
					last := all[len(all)-1]
					if err := s.keep(last); err != nil {
						t.Fatal(err)
					}
					wantNewest(t, left.afterCut(rand.New(rand.NewPCG(1, 1))), p, last.m.Version().Sequence(), last.m.Version().Sequence())
				})
			}
		}
	}
}

func TestFailedWriteOfEitherKindIsLoudAndMended(t *testing.T) {
	p, all := history(t)
	n := writesOf(all)
	for at := 1; at <= n; at++ {
		for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
			t.Run(fmt.Sprintf("%d-%s", at, mode), func(t *testing.T) {
				d := newMemDisk()
				d.at, d.mode = at, mode
				s := openOn(d, nil)
				for _, a := range all {
					base, overlay := partsOf(a.m.Manifest())
					s.change(func(m *marker) { m.begin(base, overlay, false) })
					s.writeMarker()
					failed := s.keep(a) != nil
					s.change(func(m *marker) { m.survive(&m.base) })
					s.writeMarker()
					// What was acknowledged outlasts a power cut, now.
					want := a.m.Version().Sequence()
					if !failed {
						wantNewest(t, d.afterCut(rand.New(rand.NewPCG(1, uint64(at)))), p, want, want)
						continue
					}
					if err := s.keep(a); err != nil {
						t.Fatalf("the second time: %v", err)
					}
					wantNewest(t, d.afterCut(rand.New(rand.NewPCG(2, uint64(at)))), p, want, want)
				}
				if d.failed == "" {
					t.Fatal("nothing failed")
				}
			})
		}
	}
}

// The marker on the disk is always the one before a failed write or the one
// after it, and a later write goes through.
func TestFailedMarkerWriteLosesNoCount(t *testing.T) {
	p := testPart(true, 1)
	for at := 1; at <= 8; at++ {
		for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
			for _, cut := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d-%s-%v", at, mode, cut), func(t *testing.T) {
					d := newMemDisk()
					s := openOn(d, nil)
					d.writes, d.at, d.mode, d.cut = 0, at, mode, cut
					written := 0 // acknowledged without an error
					tried := 0
					func() {
						defer func() { _ = recover() }()
						for n := range 4 {
							s.change(func(m *marker) { m.touch(p).crashes = uint8(n + 1) })
							tried = n + 1
							before := s.trouble.status().Count
							s.writeMarker()
							if s.trouble.status().Count == before {
								written = n + 1
							}
						}
					}()
					for seed := range uint64(8) {
						left := d.afterCut(rand.New(rand.NewPCG(seed, 1)))
						raw, _ := left.ReadFile(markerName, markerFile)
						m, _, ok := decodeMarker(raw)
						if !ok {
							t.Fatal("no whole copy of the marker is left")
						}
						got := 0
						if r := m.find(p); r != nil {
							got = int(r.crashes)
						}
						if got < written || got > tried {
							t.Errorf("the marker counts %d, acknowledged was %d, tried %d", got, written, tried)
						}
					}
				})
			}
		}
	}
}

func TestDamagedMapFallsToTheOneBefore(t *testing.T) {
	p, all := history(t)
	newest := all[len(all)-1].m
	for name, damage := range map[string]func(d *memDisk){
		"half a kept map": func(d *memDisk) {
			f := d.names[nameOf(newest.Manifest()).file()]
			f.data = f.data[:len(f.data)/2]
		},
		"a flipped bit in the base": func(d *memDisk) {
			f := d.names[baseFile(newest.Base().Digest())]
			f.data[len(f.data)-1] ^= 1
		},
		"half a base":  func(d *memDisk) { f := d.names[baseFile(newest.Base().Digest())]; f.data = f.data[:len(f.data)/2] },
		"an empty one": func(d *memDisk) { d.names[nameOf(newest.Manifest()).file()].data = nil },
		"no base":      func(d *memDisk) { delete(d.names, baseFile(newest.Base().Digest())) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newMemDisk()
			play(openOn(d, nil), all)
			damage(d)
			s := openOn(d, testLog(t))
			a, _ := s.best(p.ring(), "shop", nil)
			if a == nil {
				t.Fatal("no map")
			}
			if got := a.m.Version(); got >= newest.Version() {
				t.Errorf("map %v, want an older one than %v", got, newest.Version())
			}
			if s.trouble.status().Count == 0 {
				t.Error("the damage was not counted")
			}
			// The next time that it is kept it is written again, whole.
			if err := s.keep(all[len(all)-1]); err != nil {
				t.Fatal(err)
			}
			s = openOn(d, testLog(t))
			if a, _ := s.best(p.ring(), "shop", nil); a == nil || a.m.Version() != newest.Version() {
				t.Errorf("after it was kept again: %v", a)
			}
		})
	}
}

func TestTrustOfKeptMaps(t *testing.T) {
	p, all := history(t)
	d := newMemDisk()
	play(openOn(d, nil), all)
	for trust, want := range map[routemap.Trust]bool{routemap.Trusted: true, routemap.Retired: true, routemap.Revoked: false} {
		ring := p.ring()
		ring[0].Trust = trust
		a, _ := openOn(d, nil).best(ring, "shop", nil)
		if got := a != nil; got != want {
			t.Errorf("a map whose key is %v can be used: %v, want %v", trust, got, want)
		}
	}
	if a, _ := openOn(d, nil).best(p.ring(), "other", nil); a != nil {
		t.Error("a map of another fleet is used")
	}
}

func TestSuspectsArePassedOver(t *testing.T) {
	p, all := history(t)
	d := newMemDisk()
	play(openOn(d, nil), all)
	newest := all[len(all)-1].m.Manifest()
	base, overlay := partsOf(newest)
	for range suspectAt {
		s := openOn(d, nil)
		s.change(func(m *marker) { m.begin(base, overlay, false) })
		s.writeMarker()
	}
	s := openOn(d, testLog(t))
	a, suspect := s.best(p.ring(), "shop", nil)
	if a == nil || a.m.Version() >= newest.Version {
		t.Fatalf("the newest that is not suspect is %v", a)
	}
	if suspect == nil || *suspect != nameOf(newest) {
		t.Errorf("passed over %v, want %v", suspect, newest.Version)
	}
}

func TestOldFilesGo(t *testing.T) {
	_, all := history(t)
	d := newMemDisk()
	d.names["tmp-base-1"] = &inode{}
	d.names["notes"] = &inode{}
	s := openOn(d, nil)
	running := []string{tempPrefix + markerName, tempPrefix + "check"} // being written as the router runs
	for _, name := range running {
		d.names[name] = &inode{}
	}
	d.names["tmp-base-2"] = &inode{}
	for _, a := range all {
		a.at = time.Now()
		if err := s.keep(a); err != nil {
			t.Fatal(err)
		}
	}
	got := nameList(d)
	if n := strings.Count(got, keptPrefix); n != 2 {
		t.Errorf("%d kept maps, want the newest and the oldest of these: %s", n, got)
	}
	if n := strings.Count(got, basePrefix); n != 2 {
		t.Errorf("%d bases, want those of the kept maps: %s", n, got)
	}
	for _, name := range running {
		if d.names[name] == nil {
			t.Errorf("%s was removed under the hands of who writes it", name)
		}
	}
	if strings.Contains(got, tempPrefix+basePrefix) || !strings.Contains(got, "notes") {
		t.Errorf("temporary files should go, files of others stay: %s", got)
	}
}

func TestAddressesAndIDComeBack(t *testing.T) {
	d := newMemDisk()
	s := openOn(d, nil)
	want := map[string][]netip.Addr{"db.internal": {netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::1")}}
	if got := s.Addresses(); got != nil {
		t.Errorf("at first there are %v", got)
	}
	s.SaveAddresses(want)
	id := s.RouterID()
	if err := ValidateRouterID(id); err != nil {
		t.Error(err)
	}
	s = openOn(d, nil)
	if got := s.Addresses(); !reflect.DeepEqual(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	if got := s.RouterID(); got != id {
		t.Errorf("the id is %s, was %s", got, id)
	}
	d.names[addressesName].data[70] ^= 1
	d.names[idName].data = []byte("Not An Id\n")
	s = openOn(d, testLog(t))
	if got := s.Addresses(); got != nil {
		t.Errorf("damaged addresses are read as %v", got)
	}
	if got := s.RouterID(); got == id || ValidateRouterID(got) != nil {
		t.Errorf("instead of a damaged id: %s", got)
	}
	if n := s.trouble.status().Count; n != 2 {
		t.Errorf("%d errors counted, want 2", n)
	}
}

// A disk that fails once takes no router's id away for good.
func TestAnUnreadableIDIsNotReplaced(t *testing.T) {
	d := newMemDisk()
	id := openOn(d, nil).RouterID()
	s := openOn(unreadable{d, idName}, testLog(t))
	if got := s.RouterID(); got == id || ValidateRouterID(got) != nil {
		t.Errorf("while the id can't be read it is %s", got)
	}
	if s.trouble.status().Count != 1 {
		t.Errorf("troubles: %+v", s.trouble.status())
	}
	if got := openOn(d, nil).RouterID(); got != id {
		t.Errorf("the id is %s afterwards, was %s", got, id)
	}
}

// An unreadable is a disk that can't read one file.
type unreadable struct {
	disk
	name string
}

func (u unreadable) ReadFile(name string, most int64) ([]byte, error) {
	if name == u.name {
		return nil, errors.New("input/output error")
	}
	return u.disk.ReadFile(name, most)
}

func TestStateFolderBelongsToOneProcess(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenStore(dir, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStore(dir, nil); !errors.Is(err, cellway.ErrInUse) {
		t.Errorf("a second process: %v", err)
	}
	if err := CheckStore(dir); err != nil {
		t.Errorf("check while it is in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = OpenStore(dir, nil)
	if err != nil {
		t.Fatalf("after the first has gone: %v", err)
	}
	s.Close()
}

func TestStateFolderMustExist(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(t.TempDir(), "no"), file, filepath.Join(file, "below")} {
		if _, err := OpenStore(dir, nil); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("open %s: %v", dir, err)
		}
		if err := CheckStore(dir); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("check %s: %v", dir, err)
		}
	}
}

// A disk that can't be used at all stops nobody.
func TestStoreWithoutADisk(t *testing.T) {
	p, all := history(t)
	s := openOn(noDisk{errors.New("input/output error")}, testLog(t))
	if a, suspect := s.best(p.ring(), "shop", nil); a != nil || suspect != nil {
		t.Errorf("found %v, %v", a, suspect)
	}
	if err := s.keep(all[0]); err == nil {
		t.Error("kept on no disk")
	}
	done := s.change(func(m *marker) { m.end() })
	s.writeMarker()
	<-done
	s.SaveAddresses(nil)
	if err := ValidateRouterID(s.RouterID()); err != nil {
		t.Error(err)
	}
	if n := s.trouble.status().Count; n < 5 {
		t.Errorf("%d errors counted", n)
	}
}
