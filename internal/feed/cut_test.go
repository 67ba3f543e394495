package feed

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/routemap"
)

// A cutter is a control plane that breaks answers off in their midst.
type cutter struct {
	plane  *plane
	path   string       // of what it cuts: "manifest", or a part's digest
	length bool         // the answer says how long it would be
	left   atomic.Int64 // how many are still cut
	cuts   atomic.Int64
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	whole := httptest.NewRecorder()
	if strings.HasSuffix(r.URL.Path, "manifest") {
		c.plane.manifest(whole, r)
	} else {
		d, _ := routemap.ParseDigest(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
		part, _ := c.plane.src.Part(r.Context(), routemap.Part{Digest: d})
		_, _ = whole.Write(part)
	}
	if !strings.HasSuffix(r.URL.Path, c.path) || c.left.Load() <= 0 || whole.Body.Len() == 0 {
		w.WriteHeader(whole.Code)
		_, _ = w.Write(whole.Body.Bytes())
		return
	}
	c.left.Add(-1)
	c.cuts.Add(1)
	if c.length {
		w.Header().Set("Content-Length", strconv.Itoa(whole.Body.Len()))
	}
	_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// A control plane that goes down in the midst of an answer, and is back at once,
// is followed within seconds. One whose answers always break off gets few
// questions, and is followed once they don't.
func TestAnswersThatBreakOff(t *testing.T) {
	for name, length := range map[string]bool{"with its length": true, "in chunks": false} {
		for _, what := range []string{"manifest", "base", "overlay"} {
			for kind, often := range map[string]int64{"once": 1, "three times": cutsForgiven, "always": 1 << 30} {
				t.Run(what+" "+name+" "+kind, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b := newBench(t)
						p := &plane{src: b.src}
						h := servePlane(t, p)
						b.src.set(b.pub.base())
						b.start(h)
						defer b.end()
						b.want(1)
						v := b.pub.base()
						c := &cutter{plane: p, path: what, length: length}
						c.left.Store(often)
						switch what {
						case "base":
							c.path = v.Manifest.Base.Digest.String()
						case "overlay":
							c.path = v.Manifest.Overlay.Digest.String()
						}
						p.mu.Lock()
						p.odd = c
						p.mu.Unlock()
						b.wait(time.Minute) // until it is asked in the plane's place
						b.src.set(v)
						begun := time.Now()
						if often <= cutsForgiven {
							b.wait(time.Duration(often) * 2 * time.Second)
							b.want(1, 2)
							if c.cuts.Load() != often || len(b.feed.Status().Refused) > 0 {
								t.Errorf("%d cuts, refused %v", c.cuts.Load(), b.feed.Status().Refused)
							}
							return
						}
						b.wait(time.Hour)
						b.want(1)
						most := int64(3600 / 5)
						if what != "manifest" { // a part may be large
							most = 40
						}
						if n := c.cuts.Load(); n > most || n < cutsForgiven {
							t.Errorf("%d answers were cut off in %v, want at most %d", n, time.Since(begun), most)
						}
						for _, r := range b.feed.Status().Refused {
							if r.Reason != ReasonCut {
								t.Errorf("refused: %+v; want it for %s", r, ReasonCut)
							}
						}
						if what != "manifest" && len(b.feed.Status().Refused) == 0 {
							t.Error("a part that always breaks off is no refusal")
						}
						c.left.Store(0)
						b.wait(refuseMost * 3 / 2)
						b.want(1, 2)
					})
				})
			}
		}
	}
}
