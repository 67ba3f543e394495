package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/shuffle"
)

// Workers is one list of a cell's workers. It does not change, so any number of
// goroutines may use it. Only [ParseWorkers] and
// [NewWorkers] make useful ones.
type Workers struct {
	hands     *shuffle.Snapshot
	endpoints map[string]*url.URL
}

// A workersFile is a list as JSON.
type workersFile struct {
	Salt    string         `json:"salt,omitempty"`
	Size    int            `json:"size"`
	Sizes   map[string]int `json:"sizes,omitempty"`
	Strict  bool           `json:"strict,omitempty"`
	Workers []workerInFile `json:"workers"`
}

type workerInFile struct {
	ID       string `json:"id"`
	Zone     string `json:"zone,omitempty"`
	Weight   *int   `json:"weight,omitempty"`
	Endpoint string `json:"endpoint"`
}

// ParseWorkers reads a list in JSON: the fields of a [shuffle.Config], with an
// "endpoint", scheme://host:port, for each worker. A worker without a weight has
// weight 1. Unknown fields, anything after the list, two workers with the same
// endpoint and what [shuffle.NewSnapshot] refuses are errors that wrap
// [cellway.ErrInvalid].
func ParseWorkers(b []byte) (*Workers, error) {
	var f workersFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("list of workers: %w: %w", cellway.ErrInvalid, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list of workers: %w: there is more after its end; remove it", cellway.ErrInvalid)
	}
	cfg := shuffle.Config{Salt: f.Salt, Size: f.Size, Sizes: f.Sizes, Strict: f.Strict}
	endpoints := make(map[string]string, len(f.Workers))
	for _, w := range f.Workers {
		weight := 1
		if w.Weight != nil {
			weight = *w.Weight
		}
		cfg.Workers = append(cfg.Workers, shuffle.Worker{ID: w.ID, Zone: w.Zone, Weight: weight})
		endpoints[w.ID] = w.Endpoint
	}
	return NewWorkers(cfg, endpoints)
}

// NewWorkers returns a list of the workers of cfg, with their endpoints by id. The
// error wraps [cellway.ErrInvalid] if one has no endpoint, or that of another, or
// its id, and if [shuffle.NewSnapshot] refuses cfg.
func NewWorkers(cfg shuffle.Config, endpoints map[string]string) (*Workers, error) {
	w := &Workers{endpoints: make(map[string]*url.URL, len(cfg.Workers))}
	taken := make(map[string]string, len(cfg.Workers))
	for _, one := range cfg.Workers {
		if w.endpoints[one.ID] != nil {
			return nil, fmt.Errorf("worker %q: %w: the list has this id twice; give each worker its own", one.ID, cellway.ErrInvalid)
		}
		u, err := cellway.ParseEndpoint(endpoints[one.ID])
		if err != nil {
			return nil, fmt.Errorf("worker %q: %w: endpoint: %w", one.ID, cellway.ErrInvalid, err)
		}
		at := cellway.EndpointAddress(endpoints[one.ID])
		if other, ok := taken[at]; ok {
			return nil, fmt.Errorf("worker %q: %w: %q has the endpoint %s too; give each its own", one.ID, cellway.ErrInvalid, other, u)
		}
		taken[at] = one.ID
		w.endpoints[one.ID] = u
	}
	var err error
	if w.hands, err = shuffle.NewSnapshot(cfg); err != nil {
		return nil, fmt.Errorf("list of workers: %w: %w", cellway.ErrInvalid, err)
	}
	return w, nil
}

// Hands returns the snapshot that hands are dealt from.
func (w *Workers) Hands() *shuffle.Snapshot { return w.hands }

// MarshalJSON returns what [ParseWorkers] reads as an equal list. It holds the salt:
// whoever sees it can look for tenants that share a hand.
func (w *Workers) MarshalJSON() ([]byte, error) {
	cfg := w.hands.Config()
	f := workersFile{Salt: cfg.Salt, Size: cfg.Size, Sizes: cfg.Sizes, Strict: cfg.Strict}
	for _, one := range cfg.Workers {
		f.Workers = append(f.Workers, workerInFile{one.ID, one.Zone, new(one.Weight), w.endpoints[one.ID].String()})
	}
	return json.Marshal(f)
}

// Version returns the version of the hands.
func (w *Workers) Version() string { return w.hands.Version() }

// Endpoint returns where the worker with the given id is, or nil if the list has
// none of that id. The caller must not change it.
func (w *Workers) Endpoint(id string) *url.URL { return w.endpoints[id] }
