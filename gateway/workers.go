package gateway

import (
	"encoding/json"
	"net/url"

	"github.com/cellway/cellway/internal/workers"
	"github.com/cellway/cellway/shuffle"
)

// Workers is one list of a cell's workers. It does not change, so any number of
// goroutines may use it. Only [ParseWorkers] and
// [NewWorkers] make useful ones.
type Workers struct {
	hands     *shuffle.Snapshot
	deal      Deal
	dealer    shuffle.Dealer
	endpoints map[string]*url.URL
}

// ParseWorkers reads a list in JSON: the fields of a [shuffle.Config], with an
// "endpoint", scheme://host:port, for each worker, and those of a [Deal]: "deal",
// "overlap", "numbers", and a "seat" for each worker. A worker without a weight has
// weight 1. Unknown fields, anything after the list, two workers with the same
// endpoint, and what [shuffle.NewSnapshot] or [Workers.DealtBy] refuses, are errors
// that wrap [cellway.ErrInvalid].
func ParseWorkers(b []byte) (*Workers, error) {
	l, err := workers.Decode(b)
	if err != nil {
		return nil, err
	}
	return ofList(l)
}

// ofList returns the workers of a list, if it is a good one.
func ofList(l workers.List) (*Workers, error) {
	w, err := NewWorkers(l.Config())
	if err != nil {
		return nil, err
	}
	deal, err := l.Dealing()
	if err != nil {
		return nil, err
	}
	return w.DealtBy(deal)
}

// NewWorkers returns a list of the workers of cfg, with their endpoints by id, dealt
// by [HRW1]. The error wraps [cellway.ErrInvalid] if one has no endpoint, or that of
// another, or its id, and if [shuffle.NewSnapshot] refuses cfg.
func NewWorkers(cfg shuffle.Config, endpoints map[string]string) (*Workers, error) {
	hands, urls, err := workers.Check(cfg, endpoints)
	if err != nil {
		return nil, err
	}
	return &Workers{hands: hands, dealer: hands, endpoints: urls}, nil
}

// DealtBy returns a list of the same workers whose hands are dealt so. It keeps the
// maps of d. The error wraps [cellway.ErrInvalid] if the workers, or the size of
// hands, don't fit, and says what would.
func (w *Workers) DealtBy(d Deal) (*Workers, error) {
	dealer, err := d.Dealer(w.hands)
	if err != nil {
		return nil, err
	}
	return &Workers{hands: w.hands, deal: d, dealer: dealer, endpoints: w.endpoints}, nil
}

// Deal returns how the hands are dealt. The caller must not change its maps.
func (w *Workers) Deal() Deal { return w.deal }

// Dealer returns what deals the hands.
func (w *Workers) Dealer() shuffle.Dealer { return w.dealer }

// Hands returns the snapshot of the workers, which deals their hands if they are
// dealt by [HRW1].
func (w *Workers) Hands() *shuffle.Snapshot { return w.hands }

// MarshalJSON returns what [ParseWorkers] reads as an equal list. It holds the salt:
// whoever sees it can look for tenants that share a hand.
func (w *Workers) MarshalJSON() ([]byte, error) {
	endpoints := make(map[string]string, len(w.endpoints))
	for id, at := range w.endpoints {
		endpoints[id] = at.String()
	}
	return json.Marshal(workers.ListOf(w.hands.Config(), endpoints, w.deal))
}

// Version returns the version of the hands. It begins with the method, if that is not
// [HRW1].
func (w *Workers) Version() string { return w.dealer.Version() }

// Endpoint returns where the worker with the given id is, or nil if the list has
// none of that id. The caller must not change it.
func (w *Workers) Endpoint(id string) *url.URL { return w.endpoints[id] }
