package routemap_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// The files in testdata/vectors are for programs in any language that read
// maps: see testdata/README.md. They are frozen: a change sends keys elsewhere.
var updateVectors = flag.Bool("vectors.update", false, "write testdata/vectors anew; published maps then mean something else")

const vectors = "testdata/vectors"

// compareFile holds a file to its content, or writes it if asked to.
func compareFile(t *testing.T, name string, want []byte) {
	t.Helper()
	name = filepath.Join(vectors, name)
	if *updateVectors {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is frozen and no longer what this package computes: what was published means something else now", name)
	}
}

// A hashVector is what follows from the name of a tenant.
type hashVector struct {
	Tenant   cellway.TenantID  `json:"tenant"`
	SHA256   string            `json:"sha256"`   // of its bytes
	Buckets  map[string]uint32 `json:"buckets"`  // count: bucket
	Position uint8             `json:"position"` // the least admit, in percent, that lets it through
}

func vectorTenants() []cellway.TenantID {
	names := []string{"a", "A", "acme", "Acme", "acme.example", "user@example.com", "a:b", "~", "-", "_", "0", "00", "18446744073709551615", strings.Repeat("x", cellway.MaxKeyPart)}
	for i := range 50 {
		names = append(names, fmt.Sprintf("tenant-%d", i))
	}
	out := make([]cellway.TenantID, len(names))
	for i, n := range names {
		out[i] = cellway.TenantID(n)
	}
	return out
}

func TestHashVectors(t *testing.T) {
	m := build(t, content(1, 1))
	var all []string
	for _, tenant := range vectorTenants() {
		sum := sha256.Sum256([]byte(tenant))
		v := hashVector{Tenant: tenant, SHA256: hex.EncodeToString(sum[:]), Buckets: map[string]uint32{}, Position: m.Explain(cellway.Key(tenant)).Admission.Position}
		for _, n := range []uint32{1, 2, 3, 7, 64, 1000, 16384, 65536, 999_983, 1 << 20} {
			v.Buckets[strconv.Itoa(int(n))] = routemap.BucketOf(tenant, n)
		}
		for p := range uint8(101) {
			if routemap.Admits(tenant, p) != (p >= v.Position) {
				t.Errorf("%s has position %d, but at %d %% it is admitted: %t", tenant, v.Position, p, routemap.Admits(tenant, p))
			}
		}
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, "  "+string(line))
	}
	compareFile(t, "hash.json", []byte("[\n"+strings.Join(all, ",\n")+"\n]\n"))
}

// A routeVector is what a look-up in the published map answers.
type routeVector struct {
	Key       cellway.Key      `json:"key"`
	Rule      string           `json:"rule"`
	Alias     cellway.TenantID `json:"alias,omitempty"`
	Resolved  cellway.Key      `json:"resolved"`
	Cell      cellway.CellID   `json:"cell,omitempty"`
	Epoch     cellway.Epoch    `json:"epoch"`
	Code      cellway.Code     `json:"code,omitempty"`      // of the look-up
	Admission cellway.Code     `json:"admission,omitempty"` // of Admit; empty if the request goes through
}

func routes(m *routemap.Map) []byte {
	keys := universeOf(m)
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, key := range keys {
		r := m.Lookup(key)
		code, _ := m.Admit(&r)
		v := routeVector{Key: key, Rule: r.Rule.String(), Alias: r.Alias, Resolved: r.Key, Epoch: r.Epoch, Code: r.Code, Admission: code}
		if r.Cell != nil {
			v.Cell = r.Cell.ID
		}
		line, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		end := ",\n"
		if i == len(keys)-1 {
			end = "\n"
		}
		fmt.Fprintf(&b, "  %s%s", line, end)
	}
	b.WriteString("]\n")
	return b.Bytes()
}

// universeOf returns each key that m knows, one below it, and some strangers.
func universeOf(m *routemap.Map) (keys []cellway.Key) {
	c := m.Content()
	add := func(k cellway.Key) {
		keys = append(keys, k)
		if !k.IsComposite() {
			keys = append(keys, k+"/eu", k+"/elsewhere")
		}
	}
	for _, e := range c.Entries {
		add(e.Key)
	}
	for _, a := range c.Aliases {
		add(cellway.Key(a.Name))
	}
	for _, x := range c.Tombstones {
		add(x.Key)
	}
	for i := range 30 {
		add(cellway.Key(fmt.Sprintf("stranger-%d", i)))
	}
	return keys
}

// vectorMap is everyRule with cells in all states, and a hold.
func vectorMap(t *testing.T) *routemap.Map {
	m := everyRule(t)
	cells := m.Content().Cells
	half := cells[0]
	half.Admit, half.Title, half.Guard, half.Region, half.Zone, half.Tags = 50, "Zelle Ä", cellway.GuardFence, "eu", "eu-1", map[string]string{"b": "2", "a": "1"}
	cordoned := cells[1]
	cordoned.State, cordoned.Endpoints = cellway.CellCordoned, []string{"https://cell-2.example:8443", "https://[2001:db8::1]:8443"}
	return apply(t, m, routemap.ChangeSet{
		Cells:   []cellway.Cell{half, cordoned, {ID: "cell-900", State: cellway.CellRetired}, {ID: "cell-000", Endpoints: []string{"http://10.0.0.1:80"}, State: cellway.CellActive, Admit: 100}},
		Owners:  []cellway.BucketOwner{{Bucket: 0, Cell: "cell-000"}, {Bucket: 63, Cell: "cell-001"}},
		Entries: []cellway.Entry{override("probe", cellway.Test, "cell-001"), override("huge", cellway.Heavy, "cell-000"), override("stay", cellway.Pin, "cell-002")},
		Holds:   []cellway.Hold{{Key: "new", Move: "move-7", Until: review, HoldMS: 1500}},
	}, cellway.NewEpoch(2, 7))
}

// vectorMaps are maps of every mapping, by the folder of their files.
func vectorMaps(t *testing.T) map[string]*routemap.Map {
	strict := content(2, 16)
	strict.Strict = true
	full := fullContent(2)
	full.CatchAll, full.CatchAllEpoch = "cell-002", 9
	for _, c := range []*routemap.Content{&strict, &full} {
		c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001", Epoch: 4}, {Key: "split/eu", Cell: "cell-001", Epoch: 5}}
		c.Aliases = []cellway.Alias{{Name: "old", Target: "acme"}, {Name: "wild", Target: "nobody"}}
		c.Tombstones = []cellway.Tombstone{{Key: "left", Epoch: 6}}
	}
	return map[string]*routemap.Map{"buckets": vectorMap(t), "strict": build(t, strict), "full": build(t, full)}
}

func TestPublishedMapVectors(t *testing.T) {
	for dir, m := range vectorMaps(t) {
		parent, _ := published(t, build(t, content(1, 1)), nil, cellway.NewVersion(1, 41))
		if dir == "buckets" {
			parent, _ = published(t, everyRule(t), nil, cellway.NewVersion(1, 41))
		}
		m, v, err := routemap.Publish(m, routemap.Publication{
			Version: cellway.NewVersion(2, 1), Parent: parent, CreatedAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Verdict: routemap.Verdict{Confirmed: true},
			Signers: []routemap.Signer{routemap.LocalSigner(newKey(1)), routemap.LocalSigner(signingKey())},
		})
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := json.MarshalIndent(v.Manifest, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text, err := m.Content().Format()
		if err != nil {
			t.Fatal(err)
		}
		compareFile(t, dir+"/map.cwya", v.Archive())
		compareFile(t, dir+"/manifest.json", append(manifest, '\n'))
		compareFile(t, dir+"/content.json", text)
		compareFile(t, dir+"/routes.json", routes(m))
	}
	compareFile(t, "keyring.txt", signingRing().Format())
}

// The frozen archives still open, and still send every key where they did.
func TestFrozenMapsOpen(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(vectors, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ring, err := routemap.ParseKeyring(read("keyring.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for dir := range vectorMaps(t) {
		v, err := routemap.ReadArchive(bytes.NewReader(read(dir + "/map.cwya")))
		if err != nil {
			t.Fatal(err)
		}
		m, err := v.Open(ring, false)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(routes(m), read(dir+"/routes.json")) {
			t.Errorf("%s: the frozen map sends keys elsewhere than it did", dir)
		}
		c, err := routemap.ParseContent(read(dir + "/content.json"))
		if err != nil {
			t.Fatal(err)
		}
		folded, err := m.Fold()
		if err != nil {
			t.Fatal(err)
		}
		if built := build(t, c); !built.Equal(folded) || !reflect.DeepEqual(built.Content(), m.Content()) {
			t.Errorf("%s: the frozen map and its content differ", dir)
		}
	}
}
