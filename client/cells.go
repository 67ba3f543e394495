package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

// Fleet returns the fleet's settings, or [cellway.ErrNotFound] if there is no
// fleet yet.
func (c *Client) Fleet(ctx context.Context) (out api.Fleet, err error) {
	return out, c.get(ctx, "/v1/fleet", nil, &out)
}

// PutFleet creates the fleet or changes its settings.
func (c *Client) PutFleet(ctx context.Context, s api.FleetSettings, w Write) (out api.FleetChange, err error) {
	return out, c.call(ctx, w.record(http.MethodPut, "/v1/fleet", s, &out))
}

// UpdateFleet reads the settings, has edit change them and writes them.
func (c *Client) UpdateFleet(ctx context.Context, edit func(*api.FleetSettings) error, w Write) (api.FleetChange, error) {
	return update(w, func(w Write) (out api.FleetChange, err error) {
		f, err := c.Fleet(ctx)
		if err == nil {
			err = edit(&f.FleetSettings)
		}
		if err != nil {
			return out, err
		}
		w.Revision = f.Revision
		return c.PutFleet(ctx, f.FleetSettings, w)
	})
}

// attempts is how often an update starts again because somebody was faster.
const attempts = 5

func update[T any](w Write, once func(Write) (T, error)) (T, error) {
	for n := 1; ; n++ {
		out, err := once(w)
		if n == attempts || !errors.Is(err, cellway.ErrConflict) {
			return out, err
		}
	}
}

// Cells lists all cells, retired ones too, by id.
func (c *Client) Cells(ctx context.Context) iter.Seq2[api.Cell, error] {
	return list[api.Cell](ctx, c, "/v1/cells", nil)
}

// Cell returns one cell.
func (c *Client) Cell(ctx context.Context, id cellway.CellID) (out api.Cell, err error) {
	return out, c.get(ctx, cellPath(id), nil, &out)
}

// PutCell creates a cell or changes its settings.
func (c *Client) PutCell(ctx context.Context, id cellway.CellID, s api.CellSettings, w Write) (out api.CellChange, err error) {
	return out, c.call(ctx, w.record(http.MethodPut, cellPath(id), s, &out))
}

// UpdateCell reads a cell, has edit change its settings and writes them.
func (c *Client) UpdateCell(ctx context.Context, id cellway.CellID, edit func(*api.CellSettings) error, w Write) (api.CellChange, error) {
	return update(w, func(w Write) (out api.CellChange, err error) {
		cell, err := c.Cell(ctx, id)
		if err == nil {
			err = edit(&cell.CellSettings)
		}
		if err != nil {
			return out, err
		}
		w.Revision = cell.Revision
		return c.PutCell(ctx, id, cell.CellSettings, w)
	})
}

// Drain lowers a cell's admit. It needs nothing of the cell.
func (c *Client) Drain(ctx context.Context, id cellway.CellID, admit uint8, reason string, w Write) (out api.CellChange, err error) {
	return out, c.call(ctx, w.act(cellPath(id)+"/drain", api.DrainRequest{Admit: admit, Reason: reason}, &out))
}

// Undrain raises a cell's admit.
func (c *Client) Undrain(ctx context.Context, id cellway.CellID, admit uint8, reason string, w Write) (out api.CellChange, err error) {
	return out, c.call(ctx, w.act(cellPath(id)+"/undrain", api.DrainRequest{Admit: admit, Reason: reason}, &out))
}

// Retire retires a cell that owns nothing, at the revision in w. Its name stays
// taken.
func (c *Client) Retire(ctx context.Context, id cellway.CellID, reason string, w Write) (out api.CellChange, err error) {
	return out, c.call(ctx, w.act(cellPath(id)+"/retire", api.RetireRequest{Reason: reason}, &out))
}

// AssignBuckets deals the buckets to the active cells. A bucket that holds a
// registered tenant stays where it is, unless the fleet is stateless.
func (c *Client) AssignBuckets(ctx context.Context, a api.BucketAssignment, w Write) (out api.BucketPlan, err error) {
	return out, c.call(ctx, w.act("/v1/buckets/assign", a, &out))
}

func cellPath(id cellway.CellID) string { return "/v1/cells/" + url.PathEscape(string(id)) }
