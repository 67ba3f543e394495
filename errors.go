package cellway

import "errors"

// The errors that a caller may act on. Everything else is a fault.
var (
	ErrInvalid   = errors.New("invalid")           // the input breaks a rule; the message names it
	ErrNotFound  = errors.New("not found")         // the named thing does not exist
	ErrExists    = errors.New("exists already")    // the name is taken, or was once
	ErrConflict  = errors.New("revision conflict") // the record changed since it was read
	ErrNeedsMove = errors.New("needs a move")      // the change would part a tenant from its data
	ErrGate      = errors.New("refused by the gate; confirm it to go on")
	ErrNoRoom    = errors.New("no room")          // no cell can take the tenant
	ErrInUse     = errors.New("still in use")     // tenants or keys depend on it
	ErrNotReady  = errors.New("not ready")        // try again later
	ErrForbidden = errors.New("not permitted")    // the role does not allow it
	ErrStoreDown = errors.New("store not usable") // the store can't be read or written now
)
