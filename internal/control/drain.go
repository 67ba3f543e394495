package control

import (
	"context"
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// halfAdmitted is the share of the fleet, in percent, below which a drain asks
// once.
const halfAdmitted = 50

// Drain lowers a cell's admit, in one step and whatever state the cell itself
// is in: nothing in it is asked. A drained cell takes no placements. Nothing
// refuses a drain; one that leaves less than half of the fleet admitted asks
// for a confirmation. Asking again for what is done does nothing.
func (s *Service) Drain(ctx context.Context, call Call, id cellway.CellID, admit uint8) (CellStatus, Change, error) {
	return s.setAdmit(ctx, call, id, "cell.drain", func(w *work, c Cell) (uint8, error) {
		if admit > c.Admit {
			return 0, fmt.Errorf("cell %s admits %d %%; a drain to %d %% would raise it, so undrain it: %w", id, c.Admit, admit, cellway.ErrInvalid)
		}
		w.drain = true
		return admit, w.askBelowHalf(c, admit)
	})
}

// Undrain raises a cell's admit by hand, in steps of 1 percent or more. A cell
// that a person has cordoned stays cordoned.
func (s *Service) Undrain(ctx context.Context, call Call, id cellway.CellID, admit uint8) (CellStatus, Change, error) {
	return s.setAdmit(ctx, call, id, "cell.undrain", func(w *work, c Cell) (uint8, error) {
		if admit > 100 || admit < c.Admit {
			return 0, fmt.Errorf("cell %s admits %d %%; undrain it to more, at most 100 %%, not to %d %%: %w", id, c.Admit, admit, cellway.ErrInvalid)
		}
		return admit, nil
	})
}

func (s *Service) setAdmit(ctx context.Context, call Call, id cellway.CellID, act string, to func(*work, Cell) (uint8, error)) (c CellStatus, ch Change, err error) {
	ch, err = s.writeSoon(ctx, call, func(w *work) error {
		old, err := getCell(w.tx, id)
		if err != nil {
			return err
		}
		if err := call.at(old.Revision, "cell "+string(id)); err != nil {
			return err
		}
		if old.State != cellway.CellActive {
			return fmt.Errorf("cell %s is %s, and has no traffic to admit: %w", id, old.State, cellway.ErrInvalid)
		}
		now := old
		if now.Admit, err = to(w, old); err != nil {
			return err
		}
		w.hurry = true
		if now.Admit != old.Admit {
			if err := w.putCell(&now); err != nil {
				return err
			}
			w.putMapCell(now)
			w.record(act, "cell/"+string(id), old, now)
		} else if w.drain && w.head.Restored != nil && w.m != nil {
			// The map that routers have may admit more than this record says.
			w.cs.Cells = append(w.cs.Cells, now.inMap())
			w.record(act, "cell/"+string(id), old, now)
		} else {
			w.change.Unchanged = true
		}
		c, err = w.status(now)
		return err
	})
	return c, ch, err
}

// askBelowHalf asks for a confirmation if a drain takes the fleet below half.
func (w *work) askBelowHalf(drained Cell, admit uint8) error {
	before, after, n := 0, 0, 0
	if err := w.eachRow(func(r *row) {
		c := r.cell
		if c.State != cellway.CellActive {
			return
		}
		n++
		before += int(c.Admit)
		if c.ID == drained.ID {
			c.Admit = admit
		}
		after += int(c.Admit)
	}); err != nil {
		return err
	}
	if after < n*halfAdmitted && after < before {
		w.ask = append(w.ask, routemap.Cause{Name: "fleet_drained", Count: 100 - uint32(after/max(n, 1)), Limit: halfAdmitted})
	}
	return nil
}
