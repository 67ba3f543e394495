package hand

import (
	"sync"
	"time"
)

// suspicion is how long a breakage is held against a tenant, and how fresh the
// successes of others on the same member must be.
const suspicion = 30 * time.Second

// A dossier holds the members that broke under a tenant's requests lately.
type dossier struct {
	mu     sync.Mutex
	broken [4]breakage
	until  int64 // no retries before
}

type breakage struct {
	member *Member
	at     int64
}

// broke records that a request of ten broke its connection to m. It reports
// whether ten is now suspected, and was not before: two members broke on which
// others do well.
func (d *dossier) broke(ten *Tenant, m *Member, now int64) (fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	oldest := 0
	for i, b := range d.broken {
		if b.member == m {
			oldest = i
			break
		}
		if b.at < d.broken[oldest].at {
			oldest = i
		}
	}
	d.broken[oldest] = breakage{m, now}
	distinct := 0
	for _, b := range d.broken {
		if b.member != nil && now-b.at < int64(suspicion) && b.member.otherGood(ten, now-int64(suspicion)) {
			distinct++
		}
	}
	if distinct < 2 {
		return false
	}
	fresh = now >= d.until
	d.until = now + int64(suspicion)
	return fresh
}

// suspected reports whether the tenant's requests are to be sent once only.
func (d *dossier) suspected(now int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return now < d.until
}
