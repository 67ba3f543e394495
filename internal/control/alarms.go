package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cellway/cellway/routemap"
)

// An Alarm is something that a person should look at. Alarms decide nothing.
type Alarm struct {
	Code    AlarmCode
	Subject string // what it is about, as in the journal: "override/acme", "router/r1"
	Since   time.Time
	Message string
}

// An AlarmCode says in one word what is wrong. Programs may rely on it.
type AlarmCode string

// The alarms.
const (
	AlarmHalted     AlarmCode = "publishing_halted"  // a person must confirm the newest map
	AlarmUndone     AlarmCode = "map_undone"         // a router had a newer map than a person confirmed, and loses it
	AlarmPublishing AlarmCode = "publishing_failing" // accepted changes don't get out
	AlarmStore      AlarmCode = "store_failing"      // the store can't be read, written or backed up
	AlarmSink       AlarmCode = "sink_failing"       // versions are not written where routers read them
	AlarmFolding    AlarmCode = "folding_failing"    // no fresh base can be made
	AlarmRetention  AlarmCode = "retention_failing"  // old versions stay
	AlarmOverlay    AlarmCode = "overlay_full"       // ordinary changes must wait for the next base
	AlarmShared     AlarmCode = "endpoint_shared"    // cells that are not retired have an address in common
	AlarmUsage      AlarmCode = "usage_wrong"        // a cell's record of what it holds is not the sum of its tenants
	AlarmOverdue    AlarmCode = "override_overdue"   // review_by has passed
	AlarmBehind     AlarmCode = "router_behind"      // it reports, and serves an older map for too long
	AlarmMissing    AlarmCode = "router_missing"     // it fell silent without leaving
	AlarmLockedOut  AlarmCode = "router_locked_out"  // calls for maps or reports are refused, for want of a token that may
	AlarmNoRouter   AlarmCode = "no_router"          // none that was known is live
	AlarmCell       AlarmCode = "cell_failing"       // routers get no answers from a cell
	AlarmMismatch   AlarmCode = "cell_mismatch"      // a cell's guard refuses what routers send to it by the map
)

const (
	// behindFor is how long a live router may serve less than the newest version.
	behindFor = time.Minute

	// overlayAlarm is the part of the open overlay, in percent, that is nearly
	// full.
	overlayAlarm = 90
)

// Alarms returns all that a person should look at, by code, then subject.
func (s *Service) Alarms() []Alarm {
	now := time.Now()
	all := slices.Concat(s.health.alarms(), s.overdue.alarms(), s.routerAlarms(now), s.routers.cellAlarms(now), s.lockedOut.alarms(now))
	if r := s.restored.Load(); r != nil {
		all = append(all, Alarm{AlarmHalted, "fleet", r.At, r.refuse().Error()})
	}
	if left := s.aftermath.Load(); left != nil {
		if u := left.undone(); u != nil {
			all = append(all, Alarm{AlarmUndone, "fleet", u.At, u.tell()})
		}
	}
	slices.SortFunc(all, func(a, b Alarm) int {
		return cmp.Or(strings.Compare(string(a.Code), string(b.Code)), strings.Compare(a.Subject, b.Subject))
	})
	return all
}

func (s *Service) routerAlarms(now time.Time) (out []Alarm) {
	routers := s.Routers()
	live, last := 0, time.Time{}
	// A control plane that has just started has not been told yet who is live.
	settled := s.routers.settled(now)
	for _, r := range routers {
		subject := "router/" + r.ID
		if r.LastSeen.After(last) {
			last = r.LastSeen
		}
		switch silent := now.Sub(r.LastSeen); {
		case r.Live:
			live++
			if !r.Behind.IsZero() && now.Sub(r.Behind) >= behindFor {
				out = append(out, Alarm{AlarmBehind, subject, r.Behind, fmt.Sprintf("it serves map %v; the highest it was offered is %v", r.Report.Version, r.Report.Seen)})
			}
		case settled && silent < expectFor:
			out = append(out, Alarm{AlarmMissing, subject, r.LastSeen.Add(Lease), fmt.Sprintf("it served map %v when it was last heard of", r.Report.Version)})
		}
	}
	if settled && len(routers) > 0 && live == 0 {
		out = append(out, Alarm{AlarmNoRouter, "routers", last.Add(Lease), fmt.Sprintf("%d routers are known and none is live", len(routers))})
	}
	return out
}

// watchOverlay notes an overlay that is nearly full, which folding should have
// prevented.
func (s *Service) watchOverlay() {
	const most = routemap.OpenOverlay * overlayAlarm / 100
	if m := s.Accepted(); m != nil && m.OverlaySize() >= most {
		s.health.set(AlarmOverlay, "map", fmt.Sprintf("the overlay has %d bytes, %d are open to ordinary changes", m.OverlaySize(), routemap.OpenOverlay))
	} else {
		s.health.end(AlarmOverlay, "map")
	}
}
