package httpapi

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/routemap"
)

// A partCache holds the parts that routers fetch: when a new base is out, all
// of them want it at the same moment. It reads and compresses each part once.
type partCache struct {
	mu    sync.Mutex
	parts map[routemap.Digest]*part
	order []routemap.Digest // oldest use first
	bytes int               // in memory, compressed forms included
}

// mostPartBytes bounds the cache; the part in use stays, however large.
const mostPartBytes = 256 << 20

func newPartCache() *partCache { return &partCache{parts: map[routemap.Digest]*part{}} }

// A part is the bytes of one digest, read and compressed at most once.
type part struct {
	digest routemap.Digest
	cache  *partCache
	read   sync.Mutex // held while the bytes are read
	raw    []byte

	once   sync.Once
	packed []byte // nil if packing gains nothing

	counted int // bytes of it in cache.bytes; guarded by cache.mu
}

// get returns the part with that digest, from load the first time. A failed
// load is tried again by the next caller.
func (c *partCache) get(digest routemap.Digest, load func() ([]byte, error)) (*part, error) {
	c.mu.Lock()
	p := c.parts[digest]
	if p == nil {
		p = &part{digest: digest, cache: c}
		c.parts[digest] = p
	}
	c.mu.Unlock()
	p.read.Lock()
	defer p.read.Unlock()
	if p.raw == nil {
		raw, err := load()
		if err != nil {
			c.mu.Lock()
			if c.parts[digest] == p {
				delete(c.parts, digest)
			}
			c.mu.Unlock()
			return nil, err
		}
		p.raw = raw
	}
	c.used(p, len(p.raw))
	return p, nil
}

// used moves p, which has at least size bytes now, to the end of the order
// and drops what is too much.
func (c *partCache) used(p *part, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.parts[p.digest] {
	case p:
	case nil: // dropped, or forgotten by a load that failed while this one waited
		c.parts[p.digest] = p
	default:
		return // another one is kept in its place
	}
	if i := slices.Index(c.order, p.digest); i >= 0 {
		c.order = slices.Delete(c.order, i, i+1)
	}
	c.order = append(c.order, p.digest)
	if size > p.counted {
		c.bytes += size - p.counted
		p.counted = size
	}
	for c.bytes > mostPartBytes && len(c.order) > 1 {
		old := c.parts[c.order[0]]
		c.order = c.order[1:]
		c.bytes -= old.counted
		old.counted = 0
		delete(c.parts, old.digest)
	}
}

// packAtLeast is the size in bytes from which packing pays for itself.
const packAtLeast = 16 << 10

func (p *part) gzipped() []byte {
	p.once.Do(func() {
		if len(p.raw) < packAtLeast {
			return
		}
		var b bytes.Buffer
		// Speed counts: the first router to ask waits for it.
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err != nil {
			return
		}
		z.Write(p.raw)
		if z.Close() == nil && b.Len() < len(p.raw)*9/10 {
			p.packed = bytes.Clone(b.Bytes()) // without the buffer's spare room
			p.cache.used(p, len(p.raw)+len(p.packed))
		}
	})
	return p.packed
}

// serve answers with the part. It never changes, so it may be kept for ever.
func (p *part) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", api.PartType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", `"`+p.digest.String()+`"`)
	if packs(r.Header.Get("Accept-Encoding")) && r.Header.Get("Range") == "" {
		if packed := p.gzipped(); packed != nil {
			h.Set("ETag", `"`+p.digest.String()+`.gzip"`)
			h.Set("Content-Encoding", "gzip")
			h.Set("Content-Length", strconv.Itoa(len(packed)))
			w.Write(packed)
			return
		}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(p.raw))
}

// packs reports whether an Accept-Encoding takes gzip.
func packs(accept string) bool {
	for enc := range strings.SplitSeq(accept, ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(enc), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q = strings.ReplaceAll(q, " ", "")
			return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
		}
	}
	return false
}
