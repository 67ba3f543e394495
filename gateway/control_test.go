package gateway

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

// A headquarters plays control planes whose answers tests change.
type headquarters struct {
	t      *testing.T
	net    memnet.Net
	client *http.Client

	mu    sync.Mutex
	says  map[string]http.HandlerFunc // by host
	asked map[string]int
	whole int // answers that were no 304
}

func newHeadquarters(t *testing.T, hosts ...string) *headquarters {
	h := &headquarters{t: t, says: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	tr := &http.Transport{DialContext: h.net.DialContext}
	t.Cleanup(tr.CloseIdleConnections)
	h.client = &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, host := range hosts {
		srv := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/cells/cell-001/hands" {
				t.Errorf("it is asked for %s", r.URL.Path)
			}
			h.mu.Lock()
			f := h.says[host]
			h.asked[host]++
			h.mu.Unlock()
			f(w, r)
		})}
		go srv.Serve(h.net.Listen(host + ":7700"))
		t.Cleanup(func() { srv.Close() })
	}
	return h
}

func (h *headquarters) set(host string, f http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.says[host] = f
}

// list answers with a list, or 304.
func (h *headquarters) list(host, serial, list string) {
	body := fmt.Sprintf(`{"cell":"cell-001","serial":%q,"list":%s}`, serial, list)
	tag := fmt.Sprintf("%q", fmt.Sprint(serial, crc32.ChecksumIEEE([]byte(list))))
	h.set(host, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		h.mu.Lock()
		h.whole++
		h.mu.Unlock()
		io.WriteString(w, body)
	})
}

// problem answers as the control plane refuses.
func problem(code int, detail string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"code":"x","detail":%q}`, detail)
	}
}

func (h *headquarters) config(keep string) ControlConfig {
	return ControlConfig{URLs: []string{"http://control:7700"}, Cell: "cell-001", Keep: keep, Client: h.client}
}

func later(d time.Duration) { time.Sleep(d); synctest.Wait() }

func TestControlIsAskedAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeadquarters(t, "control")
		h.list("control", "7.1", three)
		c, err := NewControl(h.config(""))
		if err != nil {
			t.Fatal(err)
		}
		if c.Current() != nil {
			t.Error("it has a list before it was run")
		}
		running(t, c)
		first := c.Current()
		if len(ids(first)) != 3 {
			t.Fatalf("workers %v", ids(first))
		}
		later(time.Minute)
		h.mu.Lock()
		if h.whole != 1 || h.asked["control"] < 25 {
			t.Errorf("in a minute it was asked %d times, and sent %d lists", h.asked["control"], h.whole)
		}
		h.mu.Unlock()
		changed := c.Changed()
		h.list("control", "7.2", moved)
		later(3 * time.Second)
		select {
		case <-changed:
		default:
			t.Error("nobody was told of the next list")
		}
		if got := c.Current().Endpoint("a").Host; got != "127.0.0.1:9" {
			t.Errorf("a is at %s", got)
		}
		if since, err := c.Failure(); err != nil || !since.IsZero() || c.Older() {
			t.Errorf("%v since %v", err, since)
		}
	})
}

// Whatever the control plane answers that is no newer good list, the one in use
// stays, and the gateway says why.
func TestControlKeepsTheLastGoodList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeadquarters(t, "control")
		h.list("control", "7.3", three)
		c, err := NewControl(h.config(""))
		if err != nil {
			t.Fatal(err)
		}
		running(t, c)
		good := c.Current()
		for name, bad := range map[string]struct {
			answer http.HandlerFunc
			why    string
		}{
			"store down":         {problem(503, "the store can't be read: store not usable"), "503 Service Unavailable: the store can't be read"},
			"no list":            {problem(404, "cell cell-001 has no list of workers; give it one: cellway cell workers apply cell-001: not found"), "cell workers apply cell-001: not found"},
			"no token":           {problem(401, "send a token"), "needs a token of the role cell"},
			"another's token":    {problem(403, "the token x is for cell-002: not permitted"), "for cell-002; a gateway needs"},
			"another cell":       {say(`{"cell":"cell-002","serial":"7.9","list":` + moved + `}`), "cell cell-002, not those of cell-001"},
			"a bad list":         {say(`{"cell":"cell-001","serial":"7.9","list":` + strings.Replace(moved, `"size"`, `"sice"`, 1) + `}`), "sice"},
			"half an answer":     {say(`{"cell":"cell-001","serial":"7.9","li`), "ends too early"},
			"a page":             {say("<html>"), "invalid"},
			"a redirect":         {status(302, "Location", "http://elsewhere/"), "302"},
			"too long":           {say(strings.Repeat(" ", MaxList+1)), "longer"},
			"an answer cut off":  {cut, "broke off"},
			"hangs":              {hang, "deadline"},
			"304, not asked for": {status(304), "304"},
		} {
			h.set("control", status(500)) // so that the gateway asks for no 304
			later(15 * time.Second)
			h.set("control", bad.answer)
			later(15 * time.Second)
			since, err := c.Failure()
			if c.Current() != good || err == nil || !strings.Contains(err.Error(), bad.why) || !strings.HasPrefix(err.Error(), "workers from http://control:7700/") || since.IsZero() {
				t.Errorf("%s: list %v, error %v since %v", name, ids(c.Current()), err, since)
			}
			if c.Older() {
				t.Errorf("%s: an older list is told of", name)
			}
		}
		h.list("control", "7.4", moved)
		later(10 * time.Second) // one that hangs has its time
		if _, err := c.Failure(); err != nil || c.Current() == good {
			t.Errorf("with an answer again: %v", err)
		}
	})
}

// A control plane that was restored from a backup has an older list, whose workers
// may be gone. It is not taken, after a restart of the gateway neither, until a list
// is written that is newer.
func TestControlIsNotFollowedToAnOlderList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeadquarters(t, "control")
		keep := filepath.Join(t.TempDir(), "kept.json")
		h.list("control", "7.5", moved)
		c, err := NewControl(h.config(keep))
		if err != nil {
			t.Fatal(err)
		}
		running(t, c)
		good := c.Current()
		h.list("control", "7.4", three)
		later(3 * time.Second)
		_, err = c.Failure()
		if c.Current() != good || err == nil || !c.Older() || !strings.Contains(err.Error(), "7.4") || !strings.Contains(err.Error(), "cell workers apply cell-001") ||
			!strings.Contains(err.Error(), "rm "+keep) {
			t.Errorf("an older list: %v, older %t", err, c.Older())
		}
		again, err := NewControl(h.config(keep))
		if err != nil || !same(again.Current(), good) {
			t.Fatalf("it starts with %v, %v", ids(again.Current()), err)
		}
		running(t, again)
		if !same(again.Current(), good) || !again.Older() {
			t.Errorf("a restart has it follow to %v", ids(again.Current()))
		}
		h.list("control", "7.5", three)
		later(3 * time.Second)
		if _, err := c.Failure(); c.Current() != good || err == nil || !c.Older() || !strings.Contains(err.Error(), "is another") {
			t.Errorf("another list of the same serial: %v", err)
		}
		h.list("control", "7.5", moved)
		later(3 * time.Second)
		if _, err := c.Failure(); c.Current() != good || err != nil || c.Older() {
			t.Errorf("the list in use again: %v", err)
		}
		h.list("control", "8.1", three)
		later(3 * time.Second)
		if _, err := c.Failure(); err != nil || c.Older() || c.Current().Endpoint("a").Host == "127.0.0.1:9" {
			t.Errorf("a list of a later memory: %v, a is at %s", err, c.Current().Endpoint("a"))
		}
	})
}

func TestControlStartsFromWhatItKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeadquarters(t, "control")
		keep := filepath.Join(t.TempDir(), "kept.json")
		h.list("control", "7.5", moved)
		c, err := NewControl(h.config(keep))
		if err != nil {
			t.Fatal(err)
		}
		running(t, c)
		if info, err := os.Stat(keep); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the kept list: %v, %v; it holds the salt", info, err)
		}
		h.set("control", status(500))
		again, err := NewControl(h.config(keep))
		if err != nil || !same(again.Current(), c.Current()) {
			t.Errorf("it starts with %v, %v", ids(again.Current()), err)
		}
		for name, spoilt := range map[string]string{"half": `{"cell":"cell-001"`, "a plain list": three, "another cell's": `{"cell":"cell-002","serial":"7.9","list":` + three + `}`} {
			if err := os.WriteFile(keep, []byte(spoilt), 0o600); err != nil {
				t.Fatal(err)
			}
			if c, err := NewControl(h.config(keep)); err != nil || c.Current() != nil {
				t.Errorf("%s: %v, %v", name, ids(c.Current()), err)
			}
		}
		h.list("control", "7.6", three)
		last, err := NewControl(h.config(keep))
		if err != nil {
			t.Fatal(err)
		}
		running(t, last)
		if third, err := NewControl(h.config(keep)); err != nil || !same(third.Current(), last.Current()) {
			t.Errorf("what is spoilt is not kept anew: %v", err)
		}
		// With nowhere to keep it, it serves on.
		lost, err := NewControl(h.config(filepath.Join(t.TempDir(), "gone", "kept.json")))
		if err != nil {
			t.Fatal(err)
		}
		running(t, lost)
		if _, err := lost.Failure(); err != nil || lost.Current() == nil {
			t.Errorf("%v, %v", ids(lost.Current()), err)
		}
	})
}

// A disk that was full for a while has the list as soon as it can, also if that
// does not change for months: a restart may find nobody to ask.
func TestListIsKeptAsSoonAsItCanBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeadquarters(t, "control")
		dir := filepath.Join(t.TempDir(), "later")
		keep := filepath.Join(dir, "kept.json")
		h.list("control", "7.5", moved)
		c, err := NewControl(h.config(keep))
		if err != nil {
			t.Fatal(err)
		}
		p := &phone{}
		p.set(nil, "10.0.0.1")
		names, err := NewNames(NamesConfig{Name: "workers", Port: 8080, Size: 1, Resolver: p, Keep: filepath.Join(dir, "names.json")})
		if err != nil {
			t.Fatal(err)
		}
		running(t, c)
		running(t, names)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		later(time.Minute)
		if again, err := NewControl(h.config(keep)); err != nil || again.Current() == nil || !same(again.Current(), c.Current()) {
			t.Errorf("the next start has %v of the control plane's list, %v", ids(again.Current()), err)
		}
		if again, err := NewNames(names.cfg); err != nil || again.Current() == nil || !same(again.Current(), names.Current()) {
			t.Errorf("the next start has %v of the names, %v", ids(again.Current()), err)
		}
	})
}

// Two gateways of a machine that keep their lists in the same file don't start with
// each other's workers, which may be another cell's. What builds before kept is used.
func TestKeptListOfAnotherSourceIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keep := filepath.Join(t.TempDir(), "kept.json")
		p := &phone{}
		p.set(nil, "10.0.0.1")
		one := NamesConfig{Name: "workers.cell-001", Port: 8080, Size: 1, Resolver: p, Keep: keep}
		names, err := NewNames(one)
		if err != nil {
			t.Fatal(err)
		}
		running(t, names)
		two, srv := one, one
		two.Name, srv.Port = "workers.cell-002", 0
		for _, cfg := range []NamesConfig{two, srv} {
			if n, err := NewNames(cfg); err != nil || n.Current() != nil {
				t.Errorf("%s: it starts with %v, %v", cfg.asked(), ids(n.Current()), err)
			}
		}
		if u, err := NewURL(URLConfig{URL: "http://control/cell-002.json", Keep: keep}); err != nil || u.Current() != nil {
			t.Errorf("from a URL: %v, %v", ids(u.Current()), err)
		}
		if n, err := NewNames(one); err != nil || n.Current() == nil {
			t.Errorf("of the same name: %v, %v", ids(n.Current()), err)
		}
		if err := os.WriteFile(keep, []byte(three), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := NewNames(one); err != nil || len(ids(n.Current())) != 3 {
			t.Errorf("of a build before: %v, %v", ids(n.Current()), err)
		}
	})
}

// One address of several is enough, and that which answered is asked first.
func TestControlAsksTheNextAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeadquarters(t, "one", "two")
		h.set("one", status(503))
		h.list("two", "7.1", three)
		cfg := h.config("")
		cfg.URLs = []string{"http://one:7700", "http://two:7700/"}
		c, err := NewControl(cfg)
		if err != nil {
			t.Fatal(err)
		}
		running(t, c)
		later(time.Minute)
		h.mu.Lock()
		if h.asked["one"] != 1 || h.asked["two"] < 25 || h.whole != 1 {
			t.Errorf("asked %v, %d lists", h.asked, h.whole)
		}
		h.mu.Unlock()
		if _, err := c.Failure(); err != nil {
			t.Error(err)
		}
		h.set("two", hang)
		h.list("one", "7.2", moved)
		later(15 * time.Second)
		if got := c.Current().Endpoint("a").Host; got != "127.0.0.1:9" {
			t.Errorf("a is at %s", got)
		}
		h.set("one", status(500))
		later(30 * time.Second)
		if _, err := c.Failure(); err == nil || !strings.Contains(err.Error(), "one:7700") || !strings.Contains(err.Error(), "two:7700") {
			t.Errorf("nobody answers: %v", err)
		}
	})
}

func TestControlRefusesWhatMakesNoSense(t *testing.T) {
	for name, spoil := range map[string]func(*ControlConfig){
		"no address": func(c *ControlConfig) { c.URLs = nil }, "no cell": func(c *ControlConfig) { c.Cell = "" },
		"a cell's title": func(c *ControlConfig) { c.Cell = "Cell 1" }, "no URL": func(c *ControlConfig) { c.URLs = []string{"control:7700"} },
		"another scheme": func(c *ControlConfig) { c.URLs = []string{"ftp://control"} }, "a query": func(c *ControlConfig) { c.URLs = []string{"http://control?x=1"} },
		"a secret": func(c *ControlConfig) { c.URLs = []string{"http://me:secret@control"} }, "a negative time": func(c *ControlConfig) { c.Every = -1 },
	} {
		cfg := ControlConfig{URLs: []string{"http://control:7700"}, Cell: "cell-001"}
		spoil(&cfg)
		if _, err := NewControl(cfg); !errors.Is(err, cellway.ErrInvalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if c, err := NewControl(ControlConfig{URLs: []string{"https://proxy.example/control"}, Cell: "cell-001"}); err != nil || c.urls[0].String() != "https://proxy.example/control/v1/cells/cell-001/hands" {
		t.Errorf("%v, %v", c, err)
	}
}

func say(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
}

// cut breaks off in the middle of an answer.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	io.WriteString(w, `{"cell":"cell-001",`)
	http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
