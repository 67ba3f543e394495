package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

// Workers returns a cell's list of workers, without its salt.
func (c *Client) Workers(ctx context.Context, cell cellway.CellID) (out api.CellWorkers, err error) {
	return out, c.get(ctx, workersPath(cell), nil, &out)
}

// PutWorkers gives a cell its list of workers, or replaces the one at the revision in
// w. Nothing waits for routers, whatever w says: the list is no part of the map.
func (c *Client) PutWorkers(ctx context.Context, cell cellway.CellID, s api.WorkersSettings, w Write) (out api.CellWorkersChange, err error) {
	w.Wait = 0
	return out, c.call(ctx, w.record(http.MethodPut, workersPath(cell), s, &out))
}

// DeleteWorkers takes a cell's list away, at the revision in w. Gateways go on with
// the last one that they have.
func (c *Client) DeleteWorkers(ctx context.Context, cell cellway.CellID, w Write) (out api.CellWorkersChange, err error) {
	w.Wait = 0
	return out, c.call(ctx, w.record(http.MethodDelete, workersPath(cell), nil, &out))
}

// PutWorker adds a worker to a cell's list, whatever revision that has, or changes
// the one that is there, at the revision of the list in w.
func (c *Client) PutWorker(ctx context.Context, cell cellway.CellID, id string, s api.WorkerSettings, w Write) (out api.CellWorkersChange, err error) {
	w.Wait = 0
	return out, c.call(ctx, w.record(http.MethodPut, workerPath(cell, id), s, &out))
}

// UpdateWorker reads a worker, has edit change its settings and writes them. The
// error wraps [cellway.ErrNotFound] if the list lacks it.
func (c *Client) UpdateWorker(ctx context.Context, cell cellway.CellID, id string, edit func(*api.WorkerSettings) error, w Write) (api.CellWorkersChange, error) {
	return update(w, func(w Write) (out api.CellWorkersChange, err error) {
		list, err := c.Workers(ctx, cell)
		if err != nil {
			return out, err
		}
		for _, one := range list.Workers {
			if one.ID != id {
				continue
			}
			if err := edit(&one.WorkerSettings); err != nil {
				return out, err
			}
			w.Revision = list.Revision
			return c.PutWorker(ctx, cell, id, one.WorkerSettings, w)
		}
		return out, fmt.Errorf("cell %s has no worker %q: %w", cell, id, cellway.ErrNotFound)
	})
}

// RemoveWorker takes a worker out of a cell's list, at the revision of the list in w.
func (c *Client) RemoveWorker(ctx context.Context, cell cellway.CellID, id string, w Write) (out api.CellWorkersChange, err error) {
	w.Wait = 0
	return out, c.call(ctx, w.record(http.MethodDelete, workerPath(cell, id), nil, &out))
}

// DrainWorker gives a worker weight 0: it stays in the list, and is in nobody's hand
// or, by a design, passed over in those that it sits in.
func (c *Client) DrainWorker(ctx context.Context, cell cellway.CellID, id string, w Write) (out api.CellWorkersChange, err error) {
	w.Wait = 0
	return out, c.call(ctx, w.act(workerPath(cell, id)+"/drain", api.DrainWorker{Reason: w.Reason}, &out))
}

// UndrainWorker gives a drained worker a weight; 0 is the one that it had.
func (c *Client) UndrainWorker(ctx context.Context, cell cellway.CellID, id string, weight int, w Write) (out api.CellWorkersChange, err error) {
	w.Wait = 0
	return out, c.call(ctx, w.act(workerPath(cell, id)+"/undrain", api.UndrainWorker{Weight: weight, Reason: w.Reason}, &out))
}

func workersPath(cell cellway.CellID) string { return cellPath(cell) + "/workers" }

func workerPath(cell cellway.CellID, id string) string { return workersPath(cell) + "/" + segment(id) }
