package api

import (
	"time"

	"github.com/cellway/cellway"
)

// HeaderListSerial tells which list a gateway that asks for its cell's has in use, as
// a serial like that of [ServedWorkers]. What is written next is above it.
const HeaderListSerial = "Cellway-List-Serial"

// WorkerSettings are what PUT /v1/cells/{cell}/workers/{worker} sets.
type WorkerSettings struct {
	Endpoint string `json:"endpoint"`         // scheme://host:port
	Zone     string `json:"zone,omitempty"`   // what may fail together with others
	Seat     *int   `json:"seat,omitempty"`   // where hands are dealt by a design: its place in that
	Weight   *int   `json:"weight,omitempty"` // 0 to 256; 0: drained, in nobody's hand; left out: 1
}

// A Worker is one of a cell's workers.
type Worker struct {
	ID string `json:"id"`
	WorkerSettings
}

// HandSettings are what the hands of a cell depend on beside its workers.
type HandSettings struct {
	Deal    string            `json:"deal,omitempty"`    // how hands are dealt: hrw-1, reed-solomon or quadruples; empty: hrw-1
	Overlap *int              `json:"overlap,omitempty"` // of a design: how many workers two hands share at most
	Size    int               `json:"size"`              // workers in a hand
	Sizes   map[string]int    `json:"sizes,omitempty"`   // of tenants whose hands have another size
	Strict  bool              `json:"strict,omitempty"`  // refuse workers with which hands would lean on a zone
	Numbers map[string]uint64 `json:"numbers,omitempty"` // of tenants, where hands are dealt by a design
}

// WorkersSettings are what PUT /v1/cells/{cell}/workers sets: a cell's list of
// workers, which its gateways deal hands from.
type WorkersSettings struct {
	HandSettings

	// Salt makes the hands unknown to those who don't know it. It is never shown
	// again. If nil, it stays as it is; a list that is new gets one drawn.
	Salt *string `json:"salt,omitempty"`

	Workers []Worker `json:"workers"`
}

// CellWorkers is a cell's list of workers, without its salt.
type CellWorkers struct {
	Cell cellway.CellID `json:"cell"`
	HandSettings
	Workers   []Worker         `json:"workers"`           // by id
	Drained   map[string]int   `json:"drained,omitempty"` // what drained workers weighed, by id
	Salted    bool             `json:"salted"`            // there is a salt
	Version   string           `json:"version"`           // of the hands, as gateways tell it
	Serial    cellway.Version  `json:"serial"`            // rises with each write, also over a restore
	ChangedAt time.Time        `json:"changed_at"`
	Revision  cellway.Revision `json:"revision"`
}

// A CellWorkersChange answers a write of a cell's list of workers: the list as it is
// then, or was before it was deleted.
type CellWorkersChange struct {
	CellWorkers
	Unchanged bool         `json:"unchanged,omitempty"` // the list was so already: nothing was stored
	DryRun    bool         `json:"dry_run,omitempty"`   // nothing was stored
	Hands     *HandsEffect `json:"hands,omitempty"`     // what it does to hands; left out if the list was deleted
}

// A HandsEffect is what a change of a cell's list does to the hands that its tenants
// have. To one tenant it does the same however many there are.
type HandsEffect struct {
	Tenants int  `json:"tenants"`           // that were looked at: the cell's, at most 10,000
	MadeUp  bool `json:"made_up,omitempty"` // none is registered: names were made up
	Losing  int  `json:"losing"`            // of these: from whose hand a worker goes
	Gaining int  `json:"gaining"`           // of these: into whose hand a worker comes
	Most    int  `json:"most"`              // workers that go from one hand
}

// An UndrainWorker is the body of POST
// /v1/cells/{cell}/workers/{worker}/undrain.
type UndrainWorker struct {
	Weight int    `json:"weight,omitempty"` // 1 to 256; 0: what it was before
	Reason string `json:"reason,omitempty"`
}

// A DrainWorker is the body of POST /v1/cells/{cell}/workers/{worker}/drain.
type DrainWorker struct {
	Reason string `json:"reason,omitempty"`
}

// A ServedWorkers is what a cell's gateways get: the list with its salt, in the form
// that their files have.
type ServedWorkers struct {
	Cell   cellway.CellID  `json:"cell"`
	Serial cellway.Version `json:"serial"` // rises with each write, also over a restore
	List   WorkersSettings `json:"list"`
}
