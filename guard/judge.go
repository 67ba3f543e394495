package guard

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/cellway/cellway"
)

// Fields are the header fields of a request. An http.Header is Fields.
type Fields interface {
	// Values returns the values of the named field in their order. The name
	// is in canonical form, as in X-Tenant-Id.
	Values(name string) []string
}

// A Judge decides which requests are for its cell, as the middleware of [Handler]
// does. It is for servers that are none of net/http. Any number of goroutines may
// use it. Only [NewJudge] makes useful ones.
type Judge struct {
	cfg   Config
	names map[string]bool
}

// NewJudge returns a judge by cfg, of which TokenTenant and Refused are not asked.
// The error wraps [cellway.ErrInvalid].
func NewJudge(cfg Config) (*Judge, error) {
	if err := cfg.Cell.Validate(); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if len(cfg.Addresses)+len(cfg.Names) == 0 {
		return nil, fmt.Errorf("guard of %s: it would believe nobody: give addresses of routers, or names in their certificates: %w", cfg.Cell, cellway.ErrInvalid)
	}
	for _, p := range cfg.Addresses {
		if !p.IsValid() {
			return nil, fmt.Errorf("guard of %s: an address is not valid: %w", cfg.Cell, cellway.ErrInvalid)
		}
	}
	j := &Judge{cfg: cfg, names: make(map[string]bool)}
	for _, name := range cfg.Names {
		j.names[name] = true
	}
	return j, nil
}

// A Verdict is what a [Judge] says of a request.
type Verdict struct {
	// Refused says why the request is not for this cell; "" if it is.
	Refused Reason
	// Routed says that a router sent it that is believed, and Identity what that
	// said. Otherwise the router's headers are not to be believed, and must be
	// removed.
	Routed   bool
	Identity Identity

	cell   cellway.CellID
	epoch  cellway.Epoch // that the request came with, believed or not; or at which its key has moved
	detail string

	movedTo cellway.CellID // "" if that is not known
}

// Judge says whether a request with these fields is for the cell. peer is the
// other end of its connection, the zero Addr if it has no address; state is that of
// its TLS, nil in cleartext, or if no names are believed. The verdict's strings are
// those of f. A request that is for the cell costs no memory.
func (j *Judge) Judge(f Fields, peer netip.Addr, state *tls.ConnectionState) Verdict {
	v := Verdict{cell: j.cfg.Cell}
	if len(f.Values(CellHeader)) == 0 || !j.believes(peer, state) {
		switch {
		case !j.cfg.Direct:
			v.refuse(f, NotRouted, "this cell serves what routers send to it")
		case j.cfg.Moved != nil && j.cfg.DirectKey != nil:
			j.moved(&v, j.cfg.DirectKey(f))
		}
		return v
	}
	v.Routed = true
	var err error
	switch v.Identity, err = identity(f); {
	case err != nil:
		v.refuse(f, Malformed, err.Error())
	case v.Identity.Cell != j.cfg.Cell:
		v.refuse(f, OtherCell, fmt.Sprintf("the request was routed to %s and came to %s", v.Identity.Cell, j.cfg.Cell))
	default:
		j.moved(&v, v.Identity.Key)
	}
	return v
}

// NamesMatter reports whether a Judge wants to see the state of TLS.
func (j *Judge) NamesMatter() bool { return len(j.names) > 0 }

// believes reports whether a peer is a router.
func (j *Judge) believes(peer netip.Addr, state *tls.ConnectionState) bool {
	if state != nil && len(j.names) > 0 {
		for _, chain := range state.VerifiedChains {
			for _, name := range chain[0].DNSNames {
				if j.names[name] {
					return true
				}
			}
			for _, uri := range chain[0].URIs {
				if j.names[uri.String()] {
					return true
				}
			}
		}
	}
	if !peer.IsValid() {
		return false // as on a Unix socket
	}
	peer = peer.Unmap().WithZone("")
	for _, p := range j.cfg.Addresses {
		if p.Contains(peer) {
			return true
		}
	}
	return false
}

// identity reads the headers of a router.
func identity(f Fields) (id Identity, err error) {
	one := func(name string) string {
		v := f.Values(name)
		if len(v) > 1 && err == nil {
			err = errors.New(name + " is there twice")
		}
		if len(v) == 0 {
			return ""
		}
		return v[0]
	}
	id.Cell = cellway.CellID(one(CellHeader))
	id.Key = cellway.Key(one(KeyHeader))
	if epoch := one(EpochHeader); epoch != "" {
		var bad error
		if id.Epoch, bad = cellway.ParseEpoch(epoch); bad != nil && err == nil {
			err = errors.New(EpochHeader + " is not an epoch")
		}
	}
	switch {
	case err != nil || id.Key == "":
		// Without a key, X-Tenant-Id is the application's own.
	case !id.Key.Valid():
		err = errors.New(KeyHeader + " is not a key")
	default:
		if tenant := one(TenantHeader); err == nil && tenant != string(id.Tenant()) {
			err = errors.New(TenantHeader + " is not the tenant of " + KeyHeader)
		}
	}
	return id, err
}

func (v *Verdict) refuse(f Fields, why Reason, detail string) {
	v.Refused, v.detail = why, detail
	if said := f.Values(EpochHeader); len(said) == 1 {
		if e, err := cellway.ParseEpoch(said[0]); err == nil {
			v.epoch = e
		}
	}
}

// Answer gives set the fields of the refusal and returns its status and its body,
// which an answer to HEAD goes without. It says that the request is not for this
// cell and did not run. The epoch makes it a guard's refusal, which no application
// can have meant.
func (v *Verdict) Answer(set func(name, value string)) (status int, body []byte) {
	set(EpochHeader, v.epoch.String())
	set(CellHeader, string(v.cell))
	if v.movedTo != "" {
		set(MovedHeader, string(v.movedTo))
	}
	status = http.StatusMisdirectedRequest
	return status, problem(set, status, v.Refused, v.detail)
}

// problem gives set the fields of a refusal and returns its body.
func problem(set func(name, value string), status int, why Reason, detail string) []byte {
	body, err := json.Marshal(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Code   Reason `json:"code"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, why, detail})
	if err != nil {
		body = []byte("{}") // strings and a number always marshal
	}
	set("Content-Type", "application/problem+json")
	set("Cache-Control", "no-store")
	return body
}
