package feed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/internal/fault"
)

// losses are ways in which a file is lost while a router runs.
func losses() map[string]func(d *memDisk, name string) {
	return map[string]func(d *memDisk, name string){
		"removed": func(d *memDisk, name string) { delete(d.names, name) },
		"cut short": func(d *memDisk, name string) {
			d.names[name].data = d.names[name].data[:len(d.names[name].data)/2]
		},
		"emptied": func(d *memDisk, name string) { d.names[name].data = nil },
	}
}

// lose has a file lost.
func (d *memDisk) lose(how func(*memDisk, string), name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	how(d, name)
}

// What a router has lost of what it kept is written again with the next save if
// that needs it, and else is counted on by nobody.
func TestWhatIsLostIsWrittenWithTheNextSave(t *testing.T) {
	for how, lose := range losses() {
		for _, what := range []string{basePrefix, keptPrefix} {
			t.Run(what+" "+how, func(t *testing.T) {
				p := newPublisher(t)
				d := newMemDisk()
				s := openOn(d, testLog(t))
				first := p.opened(p.base())
				first.at = time.Now().Add(-2 * time.Hour)
				for _, a := range []*accepted{first, p.opened(p.overlay())} {
					if err := s.keep(a); err != nil {
						t.Fatal(err)
					}
				}
				name := baseFile(first.m.Base().Digest())
				if what == keptPrefix {
					name = nameOf(first.m.Manifest()).file()
				}
				d.lose(lose, name)
				next := p.opened(p.overlay())
				if err := s.keep(next); err != nil {
					t.Fatal(err)
				}
				var listed []string
				for _, k := range s.kept() {
					listed = append(listed, k.Version.String())
				}
				if got := slices.Contains(listed, first.m.Version().String()); got == (what == keptPrefix) {
					t.Errorf("%s is lost, the status lists %v", name, listed)
				}
				// What is listed can be read, all of it.
				again := openOn(d, testLog(t))
				if len(again.kept()) != len(listed) || again.trouble.status().Count > 0 {
					t.Errorf("listed was %v, a start finds %v, troubles %+v", listed, again.kept(), again.trouble.status())
				}
				a, _ := again.best(p.ring(), "shop", nil)
				if a == nil || a.m.Version() != next.m.Version() {
					t.Errorf("a start finds %v, want %v", a, next.m.Version())
				}
			})
		}
	}
}

// A lost base takes the kept maps with it that need it, so that what is chosen to
// fall back on can be fallen back on.
func TestALostBaseIsNothingToFallBackOn(t *testing.T) {
	p, all := history(t)
	for how, lose := range losses() {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", how, restart), func(t *testing.T) {
				d := newMemDisk()
				s := openOn(d, testLog(t))
				for _, a := range all[:4] {
					if err := s.keep(a); err != nil {
						t.Fatal(err)
					}
				}
				gone := all[0].m.Base().Digest()
				d.lose(lose, baseFile(gone))
				if restart {
					s = openOn(d, testLog(t))
				} else if err := s.keep(all[4]); err != nil {
					t.Fatal(err)
				}
				if len(s.kept()) == 0 {
					t.Error("all is gone")
				}
				for _, k := range s.kept() {
					if k.Base == gone {
						t.Errorf("listed is %v, whose base is lost", k.Version)
					}
				}
				if st := s.trouble.status(); !strings.Contains(st.Last, "no longer in the state folder") {
					t.Errorf("trouble: %+v", st)
				}
				if a, _ := openOn(d, nil).best(p.ring(), "shop", nil); a == nil {
					t.Error("a start finds nothing")
				}
			})
		}
	}
}

// What is lost is written again also when no new map comes for long.
func TestWhatIsLostIsWrittenWithoutASave(t *testing.T) {
	for how, lose := range losses() {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := running(t)
				store := b.feed.store
				id := store.RouterID()
				addresses := map[string][]netip.Addr{"db.internal": {netip.MustParseAddr("10.0.0.1")}}
				store.SaveAddresses(addresses)
				b.wait(time.Second)
				names, _ := b.disk.List()
				for _, name := range names {
					b.disk.lose(lose, name)
				}
				b.wait(lookEvery)
				if now, _ := b.disk.List(); !slices.Equal(now, names) {
					t.Errorf("the folder holds %v, it held %v", now, names)
				}
				if st := b.feed.Status(); len(st.Kept) != 1 || st.Disk.Count == 0 {
					t.Errorf("kept %v, troubles %+v", st.Kept, st.Disk)
				}
				b.crash()
				b.src.fail(errors.New("gone"))
				b.start()
				defer b.end()
				b.wait(3 * time.Second)
				b.want(1)
				again := b.feed.store
				if got := again.RouterID(); got != id {
					t.Errorf("the id is %s, was %s", got, id)
				}
				if got := again.Addresses(); len(got) != 1 {
					t.Errorf("the addresses are %v", got)
				}
				if !again.unclean {
					t.Error("the marker does not tell of the crash")
				}
			})
		})
	}
}

// A marker file that is lost is made anew, with its name durable.
func TestALostMarkerIsWrittenAgain(t *testing.T) {
	for how, lose := range losses() {
		t.Run(how, func(t *testing.T) {
			d := newMemDisk()
			s := openOn(d, testLog(t))
			p := testPart(true, 1)
			for n := range 4 {
				d.lose(lose, markerName)
				s.change(func(m *marker) { m.touch(p).crashes = uint8(n + 1) })
				s.writeMarker()
				for seed := range uint64(8) {
					raw, err := d.afterCut(rand.New(rand.NewPCG(seed, 1))).ReadFile(markerName, markerFile)
					m, _, ok := decodeMarker(raw)
					if err != nil || !ok || len(raw) != markerFile || m.find(p).crashes != uint8(n+1) {
						t.Fatalf("after a power cut: %v, whole %v, %d bytes, %+v", err, ok, len(raw), m.records)
					}
				}
			}
		})
	}
}

// A start whose first write of the marker failed in any way goes on with the file
// that is there, and never overwrites the only whole copy in it.
func TestAFailedStartLosesNoMarker(t *testing.T) {
	p := testPart(true, 1)
	for first := 1; first <= 5; first++ {
		for at := 1; at <= 8; at++ {
			for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
				for old := range 3 { // writes before, so that either half is the newer
					t.Run(fmt.Sprintf("%d-%d-%s-%d", first, at, mode, old), func(t *testing.T) {
						d := newMemDisk()
						s := openOn(d, nil)
						for range old {
							s.change(func(m *marker) {})
							s.writeMarker()
						}
						s.change(func(m *marker) { m.touch(p).crashes = 1 })
						s.writeMarker()
						d = d.clone()
						d.at, d.mode = first, mode
						s = openOn(d, nil)
						d.writes, d.at, d.cut = 0, at, true
						written, tried := 1, 1
						func() {
							defer func() { _ = recover() }()
							for n := 2; n < 6; n++ {
								tried = n
								s.change(func(m *marker) { m.touch(p).crashes = uint8(n) })
								before := s.trouble.status().Count
								s.writeMarker()
								if s.trouble.status().Count == before {
									written = n
								}
							}
						}()
						for seed := range uint64(16) {
							raw, _ := d.afterCut(rand.New(rand.NewPCG(seed, 1))).ReadFile(markerName, markerFile)
							m, _, ok := decodeMarker(raw)
							if !ok {
								t.Fatal("no whole copy of the marker is left")
							}
							if got := int(m.find(p).crashes); got < written || got > tried {
								t.Errorf("the marker counts %d, acknowledged was %d, tried %d", got, written, tried)
							}
						}
					})
				}
			}
		}
	}
}

// A full disk takes what fits into the marker's file as it is, and a power cut in
// the middle of that leaves the copy before.
func TestAMarkerOnAFullDiskIsWrittenInPlace(t *testing.T) {
	p := testPart(true, 1)
	for old := range 2 { // writes before, so that either half is the newer
		for at := range 9 { // 0: no cut
			t.Run(fmt.Sprintf("%d-%d", old, at), func(t *testing.T) {
				d := newMemDisk()
				s := openOn(d, nil)
				for range old {
					s.change(func(m *marker) {})
					s.writeMarker()
				}
				s = openOn(stepDisk{d, func(what string, do func() error) error {
					if strings.HasPrefix(what, "create") {
						return errors.New("no space left on device")
					}
					return do()
				}}, testLog(t))
				d.writes, d.at, d.mode, d.cut = 0, at, fault.Unheard, true
				written := 0
				func() {
					defer func() { _ = recover() }()
					for n := 1; n < 6; n++ {
						s.change(func(m *marker) { m.touch(p).crashes = uint8(n) })
						s.writeMarker()
						written = n
					}
				}()
				if (written == 5) != (at == 0) {
					t.Fatalf("%d writes", written)
				}
				if s.trouble.status().Count == 0 {
					t.Error("nobody was told")
				}
				for seed := range uint64(16) {
					raw, _ := d.afterCut(rand.New(rand.NewPCG(seed, 1))).ReadFile(markerName, markerFile)
					m, _, ok := decodeMarker(raw)
					if !ok {
						t.Fatal("no whole copy of the marker is left")
					}
					got := 0
					if r := m.find(p); r != nil {
						got = int(r.crashes)
					}
					if got < written {
						t.Errorf("the marker counts %d, written was %d", got, written)
					}
				}
			})
		}
	}
}
