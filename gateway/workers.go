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
// goroutines may use it. Only [ParseWorkers] makes useful ones.
type Workers struct {
	hands     *shuffle.Snapshot
	endpoints map[string]*url.URL
}

type workersFile struct {
	Salt    string         `json:"salt"`
	Size    int            `json:"size"`
	Sizes   map[string]int `json:"sizes"`
	Strict  bool           `json:"strict"`
	Workers []struct {
		ID       string `json:"id"`
		Zone     string `json:"zone"`
		Weight   *int   `json:"weight"`
		Endpoint string `json:"endpoint"`
	} `json:"workers"`
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
	endpoints := make(map[string]*url.URL, len(f.Workers))
	taken := make(map[string]string, len(f.Workers))
	for _, w := range f.Workers {
		u, err := cellway.ParseEndpoint(w.Endpoint)
		if err != nil {
			return nil, fmt.Errorf("worker %q: %w: endpoint: %w", w.ID, cellway.ErrInvalid, err)
		}
		if other, ok := taken[u.String()]; ok {
			return nil, fmt.Errorf("worker %q: %w: %q has the endpoint %s too; give each its own", w.ID, cellway.ErrInvalid, other, u)
		}
		taken[u.String()] = w.ID
		endpoints[w.ID] = u
		weight := 1
		if w.Weight != nil {
			weight = *w.Weight
		}
		cfg.Workers = append(cfg.Workers, shuffle.Worker{ID: w.ID, Zone: w.Zone, Weight: weight})
	}
	hands, err := shuffle.NewSnapshot(cfg)
	if err != nil {
		return nil, fmt.Errorf("list of workers: %w: %w", cellway.ErrInvalid, err)
	}
	return &Workers{hands: hands, endpoints: endpoints}, nil
}

// Hands returns the snapshot that hands are dealt from.
func (w *Workers) Hands() *shuffle.Snapshot { return w.hands }

// Version returns the version of the hands.
func (w *Workers) Version() string { return w.hands.Version() }

// Endpoint returns where the worker with the given id is, or nil if the list has
// none of that id. The caller must not change it.
func (w *Workers) Endpoint(id string) *url.URL { return w.endpoints[id] }
