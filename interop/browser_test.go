package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// page tries out what browsers do, and reports what came of it. Its last
// picture is answered when the report is there, so that the page is not whole
// before that.
const page = `<!doctype html>
<title>page</title>
<p id="out">nothing yet</p>
<img src="/done">
<script>
const results = {};
const within = (what, ms, promise) => Promise.race([promise, new Promise((_, no) => setTimeout(() => no(what + ": not in time"), ms))])
  .then(v => { results[what] = v }, e => { results[what] = "failed: " + e });

const get = fetch("/echo/get?q=%20", {headers: {"X-Custom": "1"}}).then(async r => r.status + " " + (await r.json()).uri);

const body = new Uint8Array(300000).fill(65);
const post = fetch("/echo/post", {method: "POST", body}).then(async r => r.status + " " + (await r.json()).length);

const stream = fetch("/stream").then(async r => {
  const reader = r.body.getReader(), text = new TextDecoder();
  let parts = 0, all = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return parts > 1 ? all : "all at once: " + all;
    parts++;
    all += text.decode(value);
  }
});

const events = new Promise((yes, no) => {
  const got = [], source = new EventSource("/events");
  source.addEventListener("tick", e => {
    got.push(e.data + "@" + e.lastEventId);
    if (got.length == 3) { source.close(); yes(got.join(" ")); }
  });
});

const socket = new Promise((yes, no) => {
  const got = [], ws = new WebSocket("wss://" + location.host + "/socket", ["v1.chat"]);
  ws.binaryType = "arraybuffer";
  ws.onopen = () => { ws.send("text"); ws.send(new Uint8Array(1 << 20)); };
  ws.onmessage = e => {
    got.push(typeof e.data == "string" ? e.data : e.data.byteLength);
    if (got.length == 2) ws.close(4000, "enough");
  };
  ws.onclose = e => yes(ws.protocol + " " + got.join(" ") + " " + e.code + " " + e.wasClean);
  ws.onerror = () => no("error");
});

const broken = fetch("/broken").then(r => r.text()).then(t => "whole, with " + t.length + " bytes", () => "broken");

Promise.all([within("get", 15000, get), within("post", 15000, post), within("stream", 15000, stream), within("events", 15000, events),
  within("socket", 15000, socket), within("broken", 15000, broken)]).then(async () => {
  results.protocols = [...new Set(performance.getEntriesByType("resource").map(e => e.nextHopProtocol).filter(p => p))].sort().join(" ");
  document.title = "done";
  document.getElementById("out").textContent = JSON.stringify(results);
  await fetch("/report", {method: "POST", body: JSON.stringify(results)});
});
</script>
`

// A browsed is a cell with that page.
type browsed struct {
	sockets  *sockets
	reported chan map[string]string
	whole    chan struct{} // closed when the report is there
	once     sync.Once
}

func (b *browsed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	flush := func() { _ = http.NewResponseController(w).Flush() }
	switch r.URL.Path {
	case "/page":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page)
	case "/stream":
		for i := range 3 {
			fmt.Fprintf(w, "part %d;", i)
			flush()
			time.Sleep(200 * time.Millisecond) // so that they can't arrive as one
		}
	case "/events":
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; r.Context().Err() == nil && i < 100; i++ {
			fmt.Fprintf(w, "event: tick\nid: %d\ndata: number %d\n\n", i, i)
			flush()
			time.Sleep(50 * time.Millisecond)
		}
	case "/socket":
		b.sockets.ServeHTTP(w, r)
	case "/broken":
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write(make([]byte, 500))
		flush()
		panic(http.ErrAbortHandler)
	case "/report":
		var results map[string]string
		if json.NewDecoder(r.Body).Decode(&results) == nil {
			b.reported <- results
		}
		b.once.Do(func() { close(b.whole) })
	case "/done":
		select {
		case <-b.whole:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		echoSeen(w, r)
	}
}

// A browser loads a page over HTTP/2 whose script fetches, posts, streams,
// listens to events and speaks over a WebSocket.
func TestBrowser(t *testing.T) {
	var chromium string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
			break
		}
	}
	if chromium == "" {
		without(t, "no Chromium is installed")
	}
	b := &browsed{sockets: &sockets{closed: make(chan error, 1)}, reported: make(chan map[string]string, 1), whole: make(chan struct{})}
	r := newRig(t, newAuthority(t), []cellSpec{{"web", "http://" + serve(t, b)}})
	_, port, err := net.SplitHostPort(r.tls)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--user-data-dir="+t.TempDir(), "--host-resolver-rules=MAP *."+domain+" 127.0.0.1", "--ignore-certificate-errors-spki-list="+r.spki,
		"--dump-dom", "https://"+host("web")+":"+port+"/page")
	var dom, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &dom, &said, 10*time.Second
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", chromium, err, said.String())
	}
	var results map[string]string
	select {
	case results = <-b.reported:
	default:
		t.Fatalf("the page has reported nothing; it was\n%s\n%s", dom.String(), said.String())
	}
	for what, want := range map[string]string{
		"get":       "200 /echo/get?q=%20",
		"post":      "200 300000",
		"stream":    "part 0;part 1;part 2;",
		"events":    "number 0@0 number 1@1 number 2@2",
		"socket":    "v1.chat text 1048576 4000 true",
		"broken":    "broken",
		"protocols": "h2",
	} {
		if results[what] != want {
			t.Errorf("%s: %q, want %q", what, results[what], want)
		}
	}
	if !strings.Contains(dom.String(), "<title>done</title>") {
		t.Errorf("the page was not whole:\n%s", dom.String())
	}
	t.Logf("%s: %v in %v", chromium, results, time.Since(began).Round(time.Millisecond))
}
