package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
)

// untilMap is the next command on the way to a fleet's first map. fleet is "" if
// it has no settings yet.
func untilMap(fleet string, cells []api.Cell) string {
	if fleet == "" {
		return "cellway fleet create NAME --extractor header:X-Tenant-Id"
	}
	var idle, cordoned cellway.CellID
	for _, c := range cells {
		switch {
		case c.State == cellway.CellActive && c.Admit == 100:
			return "cellway map assign"
		case c.State == cellway.CellActive, c.State == cellway.CellCordoned && c.Admit < 100:
			cordoned = c.ID
		case c.State == cellway.CellNew, c.State == cellway.CellCordoned:
			if idle == "" {
				idle = c.ID
			}
		}
	}
	switch {
	case idle != "":
		for _, c := range cells {
			if c.ID == idle && len(c.Endpoints) == 0 {
				return fmt.Sprintf("cellway cell set %s --endpoint URL, then cellway cell activate %s", idle, idle)
			}
		}
		return fmt.Sprintf("cellway cell activate %s", idle)
	case cordoned != "":
		return fmt.Sprintf("cellway undrain %s --to 100", cordoned)
	}
	return "cellway cell add CELL --endpoint URL --state active"
}

// askUntilMap is untilMap of a control plane.
func askUntilMap(ctx context.Context, cl *client.Client) (string, error) {
	f, err := cl.Fleet(ctx)
	if err != nil && !errors.Is(err, cellway.ErrNotFound) {
		return "", err
	}
	cells, err := client.All(cl.Cells(ctx))
	if err != nil {
		return "", err
	}
	return untilMap(f.Name, cells), nil
}
