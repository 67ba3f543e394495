package routerd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/feed"
	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/routemap"
)

func TestRouterFollowsAFolderOfMaps(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args()...)
	p.Ready()
	p.wantCell("acme", "cell-001")
	p.wantCell("globex", "cell-002")
	if status, body := p.get(p.Listen[0]+"/", "nobody"); status != http.StatusNotFound || !strings.Contains(body, "key_unknown") {
		t.Errorf("a tenant that the map lacks: %d %s", status, body)
	}
	f.place("initech", "cell-002")
	p.Eventually("the next map", func() error {
		if st := p.mapStatus(); st.Version != f.version {
			return fmt.Errorf("map %v is in use", st.Version)
		}
		return nil
	})
	p.wantCell("initech", "cell-002")

	st := p.mapStatus()
	if !st.Router.Ready || st.From != f.path("maps") || st.Keys != 3 || st.Cells != 2 || len(st.Router.Listen) != 1 || feed.ValidateRouterID(st.Router.ID) != nil || st.Reports != nil {
		t.Errorf("the status is %+v", st)
	}
	status, body := p.get(p.Admin+"/explain?key=initech", "")
	if status != http.StatusOK || !strings.Contains(body, `"cell-002"`) {
		t.Errorf("/explain: %d %s", status, body)
	}
	if status, _ := p.get(p.Admin+"/livez", ""); status != http.StatusOK {
		t.Errorf("/livez: %d", status)
	}
	p.ChangesNothing("/map", "/explain", "/metrics", "/readyz")
	if err := p.End(); err != nil {
		t.Error(err)
	}
}

func TestNotReadyWithoutAMap(t *testing.T) {
	f := newFleet(t)
	maps := f.path("maps")
	if err := os.Rename(maps, maps+"-later"); err != nil {
		t.Fatal(err)
	}
	p := f.start(f.args()...)
	if status, body := p.get(p.Admin+"/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "no map") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	// Clients wait a moment, and are then told.
	if status, body := p.get(p.Listen[0]+"/", "acme"); status != http.StatusServiceUnavailable || !strings.Contains(body, "not_ready") {
		t.Errorf("a client: %d %s", status, body)
	}
	if err := os.Rename(maps+"-later", maps); err != nil {
		t.Fatal(err)
	}
	p.Ready()
	p.wantCell("acme", "cell-001")
}

// No client of a router that starts sees that it has no map yet.
func TestClientsWaitForTheFirstMap(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args()...)
	p.wantCell("acme", "cell-001") // at once, whether it is ready or not
}

func TestStartWithSourcesGone(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args()...)
	p.Ready()
	f.place("initech", "cell-002")
	p.Eventually("the next map on the disk", func() error {
		if st := p.mapStatus(); st.Version != f.version || st.Unkept {
			return fmt.Errorf("map %v, unkept %v", st.Version, st.Unkept)
		}
		return nil
	})
	id := p.mapStatus().Router.ID
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(f.path("maps")); err != nil {
		t.Fatal(err)
	}
	p = f.start(f.args("--source", "http://"+freeAddress(t))...)
	p.Ready()
	p.wantCell("initech", "cell-002")
	st := p.mapStatus()
	if st.From != "disk" || st.Router.ID != id {
		t.Errorf("the map is from %q, the id %s was %s", st.From, st.Router.ID, id)
	}
}

func TestKeyRotationAcrossRestarts(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args()...)
	p.Ready()
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	ring, err := routemap.ParseKeyring(mustRead(t, f.path("keyring")))
	if err != nil {
		t.Fatal(err)
	}
	other := newFleet(t) // whose key is the next one
	next, err := routemap.ParseKeyring(mustRead(t, other.path("keyring")))
	if err != nil {
		t.Fatal(err)
	}
	ring[0].Trust = routemap.Retired
	f.write("keyring", append(ring, next...).Format())
	p = f.start(f.args()...)
	p.Ready() // from the disk: what was accepted stays usable
	f.key = other.key
	f.place("initech", "cell-002")
	p.Eventually("a map by the next key", func() error {
		if st := p.mapStatus(); st.Version != f.version || st.Unkept {
			return fmt.Errorf("map %v is in use", st.Version)
		}
		return nil
	})
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	ring[0].Trust = routemap.Revoked
	f.write("keyring", append(ring, next...).Format())
	p = f.start(f.args()...)
	p.Ready()
	p.wantCell("initech", "cell-002")
}

// Readiness fails first, while the router serves on; then what is under way
// ends; then the door is closed. Nobody is refused in between.
func TestStoppingInOrder(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args("--drain-wait", "1s", "--drain-timeout", "15s")...)
	p.Ready()
	begun := time.Now()
	p.Cancel()
	p.Eventually("readiness to fail", func() error {
		if status, _ := p.get(p.Admin+"/readyz", ""); status != http.StatusServiceUnavailable {
			return fmt.Errorf("%d", status)
		}
		return nil
	})
	slow := make(chan string, 1)
	go func() { _, body := p.get(p.Listen[0]+"/slow", "acme"); slow <- body }()
	p.wantCell("acme", "cell-001") // it still serves
	if status, _ := p.get(p.Admin+"/livez", ""); status != http.StatusOK {
		t.Errorf("/livez: %d", status)
	}
	p.Eventually("the door to close", func() error {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.Listen[0], "http://"))
		if err == nil {
			c.Close()
			return errors.New("somebody still listens")
		}
		return nil
	})
	if d := time.Since(begun); d < time.Second {
		t.Errorf("the door closed after %v, before load balancers took notice", d)
	}
	select {
	case body := <-slow:
		t.Errorf("the request under way got %q, before it could be answered", body)
	case err := <-p.Done:
		t.Fatalf("the router ended (%v) with a request under way", err)
	default:
	}
	close(f.release)
	if body := <-slow; body != "cell-001 acme" {
		t.Errorf("the request under way got %q", body)
	}
	if err := p.End(); err != nil {
		t.Error(err)
	}
}

// A request that does not end is cut off at the deadline, which is no failure.
func TestStoppingHasADeadline(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args("--drain-timeout", "50ms")...)
	p.Ready()
	done := make(chan int, 1)
	go func() { status, _ := p.get(p.Listen[0]+"/slow", "acme"); done <- status }()
	p.Eventually("the request to be under way", func() error {
		if p.mapStatus().Router.InFlight == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	if err := p.End(); err != nil {
		t.Error(err)
	}
	if status := <-done; status == http.StatusOK {
		t.Error("the request ended after all")
	}
}

func TestSecondRouterInOneStateFolder(t *testing.T) {
	f := newFleet(t)
	f.start(f.args()...).Ready()
	err := Run(t.Context(), f.args(), io.Discard, io.Discard)
	if !errors.Is(err, cellway.ErrInUse) || !strings.Contains(err.Error(), "state-dir") {
		t.Errorf("got %v", err)
	}
}

func TestTakenAddressEndsTheStart(t *testing.T) {
	f := newFleet(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, key := range []string{"listen", "admin"} {
		err := Run(t.Context(), f.args("--"+key, l.Addr().String()), io.Discard, io.Discard)
		if err == nil || !strings.HasPrefix(err.Error(), key+":") || !strings.Contains(err.Error(), "in use") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestAccessLogCanBeMovedAway(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args("--access-log", f.path("access.log"))...)
	p.Ready()
	p.wantCell("acme", "cell-001")
	logged := func(file, tenant string) error {
		b, err := os.ReadFile(f.path(file))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			var one struct {
				Tenant, CellID string
				Cell           string `json:"cell_id"`
				Version        string `json:"map_version"`
			}
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				return err
			}
			if one.Tenant == tenant && one.Cell != "" && one.Version != "" {
				return nil
			}
		}
		return fmt.Errorf("not in %q", b)
	}
	p.Eventually("a line", func() error { return logged("access.log", "acme") })
	if err := os.Rename(f.path("access.log"), f.path("access.log.1")); err != nil {
		t.Fatal(err)
	}
	hangUp(t)
	p.Log.Await(t, "told to read files again", nil)
	p.wantCell("globex", "cell-002")
	p.Eventually("a line in the new file", func() error { return logged("access.log", "globex") })
}

// HTTP/2 in cleartext is for those who know beforehand that it is spoken.
func TestCleartextHTTP2(t *testing.T) {
	f := newFleet(t)
	for _, tt := range []struct {
		flag string
		want bool
	}{{"--no-h2c=false", true}, {"--no-h2c", false}} {
		p := f.start(f.args(tt.flag)...)
		p.Ready()
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		req, err := http.NewRequest(http.MethodGet, p.Listen[0]+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Tenant-Id", "acme")
		tr := &http.Transport{Protocols: protocols}
		resp, err := tr.RoundTrip(req)
		if got := err == nil && resp.ProtoMajor == 2 && resp.StatusCode == http.StatusOK; got != tt.want {
			t.Errorf("%s: %+v, %v", tt.flag, resp, err)
		}
		if err == nil {
			resp.Body.Close()
		}
		tr.CloseIdleConnections()
		if err := p.End(); err != nil {
			t.Error(err)
		}
	}
}

// The last addresses of cells' names are kept for a start without name
// resolution.
func TestAddressesOfNamesAreKept(t *testing.T) {
	f := newFleet(t)
	cell := *f.last.Cell("cell-001")
	cell.Endpoints = []string{strings.Replace(cell.Endpoints[0], "127.0.0.1", "localhost", 1)}
	m, err := f.last.Apply(routemap.ChangeSet{Cells: []cellway.Cell{cell}})
	if err != nil {
		t.Fatal(err)
	}
	f.publish(m)
	p := f.start(f.args()...)
	p.Ready()
	p.Eventually("the name to be resolved", func() error {
		if status, body := p.get(p.Listen[0]+"/", "acme"); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	// At once, as the process may end in any way.
	p.Eventually("the addresses to be kept", func() error {
		if b, err := os.ReadFile(f.path("state/addresses")); err != nil || !strings.Contains(string(b), "localhost") {
			return fmt.Errorf("%q, %v", b, err)
		}
		return nil
	})
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	s, err := feed.OpenStore(f.path("state"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Addresses()["localhost"]; len(got) == 0 {
		t.Errorf("kept are %v", s.Addresses())
	}
}

// metric returns an error unless a metric has that value.
func (p process) metric(name, value string) error {
	_, body := p.get(p.Admin+"/metrics", "")
	for line := range strings.Lines(body) {
		if strings.TrimSpace(line) == name+" "+value {
			return nil
		}
		if strings.HasPrefix(line, name) {
			body = line
		}
	}
	return fmt.Errorf("%s is not %s: %.300s", name, value, body)
}

func TestLimitsFollowTheDescriptors(t *testing.T) {
	for descriptors, want := range map[uint64]int{0: 16, 64: 16, 1024: 256, 4096: 1194, 65536: 24320, 1 << 20: serving.MostConnections, 1 << 60: serving.MostConnections} {
		if got := serving.ClientConnections(descriptors); got != want {
			t.Errorf("%d descriptors allow %d connections, want %d", descriptors, got, want)
		}
		s, err := parse(nil, nil, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		// All clients, a connection for each as a tunnel, and one for each request.
		l := s.share(s.Limits(descriptors))
		need := uint64(l.Connections + l.Connections + l.InFlight)
		if spare := min(serving.SpareDescriptors, descriptors/4); descriptors >= 64 && (need+spare > descriptors || uint64(l.Connections+l.ToServers)+spare > descriptors) {
			t.Errorf("%d descriptors: %+v may take more", descriptors, l)
		}
		if l.ToServers < l.Connections {
			t.Errorf("%d descriptors: %+v leaves cells too few", descriptors, l)
		}
	}
	if n, err := serving.RaiseDescriptors(); err != nil || n == 0 {
		t.Errorf("descriptors: %d, %v", n, err)
	}
}

// Whatever is set, one cell gets at most half of what the router has.
func TestACellGetsAtMostHalfOfTheRouter(t *testing.T) {
	for _, descriptors := range []uint64{0, 64, 1024, 4096, 20000, 65536, 1 << 20} {
		for _, args := range [][]string{nil, {"--max-in-flight", "100"}, {"--max-in-flight", "1"}, {"--max-connections", "50"}, {"--cell-pending", "0"},
			{"--cell-in-flight", "1"}, {"--cell-in-flight", "9223372036854775807", "--cell-pending", "9223372036854775807"}, {"--max-in-flight", "100000", "--cell-in-flight", "40000"}} {
			s, err := parse(args, nil, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			l := s.share(s.Limits(descriptors))
			if l.cellInFlight < 1 || l.cellPending < 0 || l.cellTunnels < 1 || l.InFlight < 1 {
				t.Errorf("%d descriptors, %q: %+v", descriptors, args, l)
			}
			if half := max(1, l.InFlight/2); l.cellInFlight > half-l.cellPending || l.cellTunnels > max(1, l.Connections/2) {
				t.Errorf("%d descriptors, %q: a cell may take too much: %+v", descriptors, args, l)
			}
		}
	}
	s, err := parse(nil, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.share(s.Limits(1024)), (limits{serving.Limits{Descriptors: 1024, Connections: 256, InFlight: 256, ToServers: 512}, 64, 64, 128}); got != want {
		t.Errorf("with 1024 descriptors: %+v, want %+v", got, want)
	}
	if got, want := s.share(s.Limits(1<<20)), (limits{serving.Limits{Descriptors: 1 << 20, Connections: serving.MostConnections, InFlight: 16384,
		ToServers: 1<<20 - serving.SpareDescriptors - serving.MostConnections}, 1024, 1024, 16384}); got != want {
		t.Errorf("with many descriptors: %+v, want %+v", got, want)
	}
}

// A cell that hangs takes half of a small router, and the other cell's clients
// don't notice.
func TestAHangingCellLeavesRoomInASmallRouter(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args("--max-in-flight", "8", "--cell-in-flight", "512", "--cell-queue-wait", "15s")...)
	p.Log.Await(t, "limits: a cell is allowed less than is set, for one must not take more than half of what the router has; "+
		"raise the limit of descriptors (ulimit -n, LimitNOFILE), or max-connections and max-in-flight", nil)
	p.Ready()
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() { p.get(p.Listen[0]+"/slow", "acme") })
	}
	p.Eventually("the cell to be full", func() error {
		if n := p.mapStatus().Router.InFlight; n < 4 {
			return fmt.Errorf("%d requests in flight", n)
		}
		return nil
	})
	for range 20 {
		p.wantCell("globex", "cell-002")
	}
	close(f.release)
	all.Wait()
}

// Who comes to the admin listener is told what is there, and all that is told
// of is there.
func TestTheAdminListenerHasAnIndex(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args()...)
	p.Ready()
	status, index := p.get(p.Admin+"/", "")
	for _, path := range []string{"/metrics", "/livez", "/readyz", "/map", "/explain?key=acme"} {
		if name, _, _ := strings.Cut(path, "="); !strings.Contains(index, name) {
			t.Errorf("%s is not in the index, %d %q", path, status, index)
		}
		if status, body := p.get(p.Admin+path, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _ := p.get(p.Admin+"/nothing", ""); status != http.StatusNotFound {
		t.Errorf("a page that is not there: %d", status)
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
