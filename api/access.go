package api

import (
	"encoding/json"
	"time"
)

// The roles. A person's role includes those before it.
const (
	RoleViewer   = "viewer"   // reads everything but secrets
	RoleOperator = "operator" // also changes cells, tenants, overrides and admits
	RoleAdmin    = "admin"    // also settings, tokens, rollbacks, backups and restores
	RoleRouter   = "router"   // a machine: reads the map and reports
	RoleCell     = "cell"     // a machine: looks up keys, reads its cell's list of workers
)

// A Token is a way in, without its secret.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"` // whose it is; the journal names it
	Role      string    `json:"role"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never
	Routers   string    `json:"routers,omitempty"`   // of a router's: the id that it may report as, or the beginning of ids followed by *; empty: any
	Cells     string    `json:"cells,omitempty"`     // of a cell's: the id whose workers it may read, or the beginning of ids followed by *; empty: any
}

// A TokenCreation is the body of POST /v1/tokens.
type TokenCreation struct {
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Routers   string    `json:"routers,omitempty"` // for a router's: as in [Token]
	Cells     string    `json:"cells,omitempty"`   // for a cell's: as in [Token]
}

// A NewToken answers POST /v1/tokens: the only time that the secret is told.
type NewToken struct {
	Token
	Secret string `json:"secret"`
}

// A JournalEntry is one act.
type JournalEntry struct {
	Number  uint64          `json:"number"`
	At      time.Time       `json:"at"`
	By      string          `json:"by"`
	Act     string          `json:"act"`     // as in "cell.drain"
	Subject string          `json:"subject"` // as in "cell/cell-002"
	Reason  string          `json:"reason,omitempty"`
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after,omitempty"`
	Change  string          `json:"change,omitempty"` // id of the change that it made to the map
}

// An Alarm is something that a person should look at. Alarms decide nothing.
type Alarm struct {
	Code    string    `json:"code"`    // stable, as in "override_overdue"
	Subject string    `json:"subject"` // what it is about, as in the journal: "override/acme", "router/r1"
	Since   time.Time `json:"since"`
	Message string    `json:"message"`
}
