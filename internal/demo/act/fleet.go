package act

import (
	"context"

	"github.com/cellway/cellway"
)

// A Fleet is what acts are played on. All its methods return when what they ask
// for is so, and it is no error if it was so before.
type Fleet interface {
	Cells
	Workers
	Control
	Routers
	Shared
}

// Cells can be harmed: each is a gateway and its workers, and all of them are
// meant.
type Cells interface {
	// Kill ends a cell's processes at once; they stay down until Start.
	Kill(ctx context.Context, cell cellway.CellID) error
	// Start returns when the cell is up and ready.
	Start(ctx context.Context, cell cellway.CellID) error
	// Suspend stops a cell's processes in their tracks until Resume.
	Suspend(ctx context.Context, cell cellway.CellID) error
	Resume(ctx context.Context, cell cellway.CellID) error
	// Deploy restarts a cell with a release that fails that share of its
	// requests; zero is the good one.
	Deploy(ctx context.Context, cell cellway.CellID, failPercent int) error
}

// Workers are the processes of a cell, behind its gateway.
type Workers interface {
	// Deal makes the hands of a cell's tenants so large; zero is all of its
	// workers, as without hands. Whole is how many there are.
	Deal(ctx context.Context, cell cellway.CellID, size int) error
	Whole() int
	// Hands returns the hands that the cell's gateway deals to tenants, and how
	// its workers have fared.
	Hands(ctx context.Context, cell cellway.CellID, tenants []cellway.TenantID) (map[cellway.TenantID][]string, error)
	Fared(ctx context.Context, cell cellway.CellID) (map[string]Fared, error)
	// Restart starts those of a cell's workers anew that are not up, at once.
	Restart(ctx context.Context, cell cellway.CellID) error
}

// Fared is how a worker has fared since it came into its gateway's list.
type Fared struct {
	Attempts uint64 // requests that were tried at it
	Trouble  uint64 // of these, how many failed but not by being late, and how often it was passed over
}

// Control is the control plane: what it decides and its own life.
type Control interface {
	// Owners returns whose tenant is whose, by the map in force.
	Owners(ctx context.Context) (func(cellway.TenantID) cellway.CellID, error)
	// SetAdmit drains and undrains a cell; every router has heard of it.
	SetAdmit(ctx context.Context, cell cellway.CellID, admit uint8) error
	// Quarantine refuses a tenant in every router until Release.
	Quarantine(ctx context.Context, tenant cellway.TenantID) error
	Release(ctx context.Context, tenant cellway.TenantID) error
	// KillControl ends the control plane's process at once, until StartControl.
	KillControl(ctx context.Context) error
	StartControl(ctx context.Context) error
}

// Routers carry the requests.
type Routers interface {
	// RestartRouters stops and starts one router after the other.
	RestartRouters(ctx context.Context) error
	// CorruptMap damages every map on its way to the routers, and publishes
	// one; it returns when every router has refused it. MendMap ends that.
	CorruptMap(ctx context.Context) error
	MendMap(ctx context.Context) error
	// Settle returns when every cell answers through every router.
	Settle(ctx context.Context) error
}

// Shared is one process that serves all tenants, as a service without cells
// would.
type Shared interface {
	// StartShared returns the base URL of the process and the name in its answers.
	StartShared(ctx context.Context) (url string, name cellway.CellID, err error)
	// KillShared ends the process at once.
	KillShared(ctx context.Context) error
}
