package routemap

import "errors"

// Reasons for which a map, a part of one or a change is refused. Each is
// wrapped with what it was and why.
var (
	ErrFormat      = errors.New("map format broken")
	ErrTooNew      = errors.New("map format too new")
	ErrDigest      = errors.New("map digest does not match")
	ErrUntrusted   = errors.New("no signature by a trusted key")
	ErrFleet       = errors.New("map of another fleet")
	ErrScope       = errors.New("map for other routers")
	ErrMapFork     = errors.New("two maps carry one version")
	ErrOld         = errors.New("map older than the one in use")
	ErrGateCounts  = errors.New("map does not count its own changes right")
	ErrCheck       = errors.New("map check failed")
	ErrOverlayFull = errors.New("overlay full until the next base")
)
