package workers

import (
	"encoding/json"
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/strictjson"
)

// A Served is a cell's list as the control plane gives it to the cell's gateways,
// salt included.
type Served struct {
	Cell cellway.CellID `json:"cell"`

	// Serial rises with each write of the list, also over a restore of the control
	// plane from a backup. So a gateway knows an older list when it sees one.
	Serial cellway.Version `json:"serial"`

	List List `json:"list"`
}

// DecodeServed reads what the control plane answers. Fields that are unknown are
// passed over, as the control plane may be newer; not those of the list itself,
// since they may change who is in a hand. The error wraps [cellway.ErrInvalid].
func DecodeServed(b []byte) (Served, error) {
	var in struct {
		Cell   cellway.CellID  `json:"cell"`
		Serial cellway.Version `json:"serial"`
		List   json.RawMessage `json:"list"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		_, err := strictjson.Explain(b, &in, true, err)
		return Served{}, fmt.Errorf("served list of workers: %w: %w", cellway.ErrInvalid, err)
	}
	if err := in.Cell.Validate(); err != nil {
		return Served{}, fmt.Errorf("served list of workers: %w", err)
	}
	if in.Serial == 0 {
		return Served{}, fmt.Errorf("served list of workers: %w: it has no serial", cellway.ErrInvalid)
	}
	if len(in.List) == 0 {
		return Served{}, fmt.Errorf("served list of workers: %w: it has no list", cellway.ErrInvalid)
	}
	l, err := Decode(in.List)
	return Served{in.Cell, in.Serial, l}, err
}
