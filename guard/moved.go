package guard

import (
	"fmt"

	"github.com/cellway/cellway"
)

// MovedHeader names the cell that a refused request's key has moved to, if the
// guard knows.
const MovedHeader = "X-Cell-Moved-To"

// moved refuses a request for a key that was this cell's and has moved. Like
// entries of a map, the whole key is looked for, then its tenant.
func (j *Judge) moved(v *Verdict, key cellway.Key) {
	if j.cfg.Moved == nil || !key.Valid() {
		return
	}
	to, epoch, ok := j.cfg.Moved(key)
	if tenant := cellway.Key(key.Tenant()); !ok && tenant != key {
		to, epoch, ok = j.cfg.Moved(tenant)
	}
	if !ok {
		return
	}
	v.Refused, v.detail = MovedAway, fmt.Sprintf("key %s has moved to %s", key, to)
	v.epoch, v.movedTo = epoch, to
}
