package routerd

import (
	"crypto/ed25519"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/feed"
	"github.com/cellway/cellway/internal/serving/servingtest"
	"github.com/cellway/cellway/routemap"
)

// A fleet is two cells, and a folder of maps that a router may follow.
type fleet struct {
	t       testing.TB
	dir     string
	key     ed25519.PrivateKey
	last    *routemap.Map
	version cellway.Version
	epoch   cellway.Epoch
	cells   []*httptest.Server
	release chan struct{} // requests for /slow are answered when it closes
	refuse  atomic.Bool   // each cell has a guard that refuses everything
}

func newFleet(t testing.TB) *fleet {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, dir: t.TempDir(), key: key, version: cellway.NewVersion(1, 0), epoch: cellway.NewEpoch(1, 1), release: make(chan struct{})}
	f.mkdir("state")
	f.write("keyring", routemap.Keyring{{Key: key.Public().(ed25519.PublicKey)}}.Format())
	c := routemap.Content{Settings: routemap.Settings{Fleet: "shop", Mapping: routemap.Full,
		Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}}}}
	for i := range 2 {
		id := cellway.CellID(fmt.Sprintf("cell-%03d", i+1))
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if f.refuse.Load() {
				w.Header().Set("X-Cell-Epoch", r.Header.Get("X-Cell-Epoch"))
				w.WriteHeader(http.StatusMisdirectedRequest)
				return
			}
			if r.URL.Path == "/slow" {
				select {
				case <-f.release:
				case <-r.Context().Done():
				}
			}
			fmt.Fprintf(w, "%s %s", id, r.Header.Get("X-Tenant-Id"))
		}))
		t.Cleanup(srv.Close)
		f.cells = append(f.cells, srv)
		c.Cells = append(c.Cells, cellway.Cell{ID: id, Endpoints: []string{srv.URL}, State: cellway.CellActive, Admit: 100})
	}
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}, {Key: "globex", Cell: "cell-002"}}
	m, err := routemap.Build(c, f.epoch)
	if err != nil {
		t.Fatal(err)
	}
	f.epoch++
	f.publish(m)
	return f
}

func (f *fleet) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fleet) mkdir(name string) {
	f.t.Helper()
	if err := os.MkdirAll(f.path(name), 0o700); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) write(name string, b []byte) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name+".tmp"), b, 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(f.path(name+".tmp"), f.path(name)); err != nil {
		f.t.Fatal(err)
	}
}

// publish writes m as the next version to the folder of maps.
func (f *fleet) publish(m *routemap.Map) {
	f.t.Helper()
	f.version++
	m, v, err := routemap.Publish(m, routemap.Publication{Version: f.version, Parent: f.last, CreatedAt: time.Now().UTC(),
		Signers: []routemap.Signer{routemap.LocalSigner(f.key)}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.last = m
	f.mkdir("maps/" + feed.FolderParts)
	f.write("maps/"+feed.FolderParts+"/"+v.Manifest.Base.Digest.String(), v.Base)
	f.write("maps/"+feed.FolderParts+"/"+v.Manifest.Overlay.Digest.String(), v.Overlay)
	f.write("maps/"+feed.FolderManifest, v.Manifest.Encode())
}

// place publishes a map in which tenant is in cell.
func (f *fleet) place(tenant, cell string) {
	f.t.Helper()
	cs, next := f.last.Number(routemap.ChangeSet{Entries: []cellway.Entry{{Key: cellway.Key(tenant), Cell: cellway.CellID(cell)}}}, f.epoch)
	f.epoch = next
	m, err := f.last.Apply(cs)
	if err != nil {
		f.t.Fatal(err)
	}
	f.publish(m)
}

// args are the settings of a router of the fleet, with what more says last.
func (f *fleet) args(more ...string) []string {
	args := []string{"--fleet", "shop", "--source", f.path("maps"), "--keyring", f.path("keyring"), "--state-dir", f.path("state"),
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain-wait", "0", "--drain-spread", "0", "--drain-timeout", "5s"}
	if http1 != "" {
		args = append(args, "--http1", http1)
	}
	return append(args, more...)
}

// A process is a router that runs in this one, or in one of its own.
type process struct{ *servingtest.Process }

// start runs a router until the test ends.
func (f *fleet) start(args ...string) process {
	f.t.Helper()
	return process{servingtest.Start(f.t, "router", Run, args...)}
}

// get asks for a URL, as that tenant.
func (p process) get(url, tenant string) (status int, body string) {
	p.T.Helper()
	fields := http.Header{}
	if tenant != "" {
		fields.Set("X-Tenant-Id", tenant)
	}
	return p.Get(url, fields)
}

// wantCell fails unless a request of tenant comes to cell.
func (p process) wantCell(tenant, cell string) {
	p.T.Helper()
	if status, body := p.get(p.Listen[0]+"/", tenant); status != http.StatusOK || body != cell+" "+tenant {
		p.T.Errorf("a request of %s is answered %d %q, want by %s", tenant, status, body, cell)
	}
}

// mapStatus asks for the status of the map.
func (p process) mapStatus() (st mapStatus) {
	p.T.Helper()
	p.Read("/map", &st)
	return st
}

// freeAddress returns a loopback address where nobody listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
