package control

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/cellway/cellway"
)

// checkEndpoints refuses an endpoint that leads to where another cell is
// already: cells share nothing, and what fails there would fail in both. Retired
// cells don't count, so that a cell can be replaced under a new name. Only
// addresses that a cell gets now are looked at, so that cells which share one
// since before this was refused can be drained, changed and mended.
func (w *work) checkEndpoints() error {
	gets := map[string]cellway.CellID{}
	for _, id := range slices.Sorted(maps.Keys(w.rows)) {
		c := w.rows[id].cell
		if c.State == cellway.CellRetired {
			continue
		}
		before, err := w.endpointsBefore(id)
		if err != nil {
			return err
		}
		if slices.Equal(before, c.Endpoints) {
			continue // what most writes find, as those that reserve room
		}
		had := map[string]bool{}
		for _, e := range before {
			had[cellway.EndpointAddress(e)] = true
		}
		seen := map[string]string{}
		for _, e := range c.Endpoints {
			switch a := cellway.EndpointAddress(e); {
			case !had[a] && !namesOnePlace(a):
				return fmt.Errorf("cell %s: endpoint %s names no one place: give a name, or an IP address that a cell listens at: %w", id, e, cellway.ErrInvalid)
			case seen[a] != "":
				return fmt.Errorf("cell %s: endpoints %s and %s are one address: %w", id, seen[a], e, cellway.ErrInvalid)
			case had[a]:
				seen[a] = e
			case gets[a] != "":
				return sharedEndpoint(id, e, gets[a])
			default:
				gets[a], seen[a] = id, e
			}
		}
	}
	if len(gets) == 0 {
		return nil
	}
	var refusal error
	err := w.eachRow(func(r *row) {
		if r.cell.State == cellway.CellRetired || refusal != nil {
			return
		}
		for _, e := range r.cell.Endpoints {
			if id := gets[cellway.EndpointAddress(e)]; id != "" && id != r.cell.ID {
				refusal = sharedEndpoint(id, e, r.cell.ID)
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return refusal
}

// namesOnePlace reports whether an endpoint's address can't be another spelling
// of one that some cell has. The address of all interfaces leads to this machine,
// and a host that is all digits and dots but no address is one to some resolvers.
func namesOnePlace(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return !ip.IsUnspecified() && !ip.IsMulticast()
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	// A top-level domain begins with a letter: RFC 3696, section 2.
	return last != "" && (last[0] < '0' || last[0] > '9')
}

func sharedEndpoint(id cellway.CellID, endpoint string, other cellway.CellID) error {
	return fmt.Errorf("cell %s can't have the address %s, which cell %s has: cells share nothing; give each its own, or retire %s first: %w",
		id, cellway.EndpointAddress(endpoint), other, other, cellway.ErrInUse)
}

// endpointsBefore returns the endpoints that a cell had before w.
func (w *work) endpointsBefore(id cellway.CellID) ([]string, error) {
	b, err := w.cells()
	if err != nil {
		return nil, err
	}
	i, ok := slices.BinarySearchFunc(b.rows, id, byCell)
	if !ok {
		return nil, nil
	}
	return b.rows[i].cell.Endpoints, nil
}

// watchEndpoints notes addresses that cells share since before that was refused.
func (s *Service) watchEndpoints() {
	there := map[string]bool{}
	if m := s.Accepted(); m != nil {
		for _, shared := range m.SharedAddresses() {
			var ids []string
			for _, id := range shared.Cells {
				ids = append(ids, string(id))
			}
			subject := "address/" + shared.Address
			there[subject] = true
			s.health.set(AlarmShared, subject, fmt.Sprintf("cells %s have this address in common, so that what fails there fails in all of them; give each its own", strings.Join(ids, ", ")))
		}
	}
	s.health.keep(AlarmShared, there)
}
