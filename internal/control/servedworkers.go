package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

// mostServed is how many bytes of encoded lists are kept in memory at most. One
// list may have 4 MiB.
const mostServed = 64 << 20

// ServedWorkers returns a cell's list as its gateways get it, salt included, in
// JSON, and a tag of all of it in quotes: a revision would not do, as after a restore
// from a backup another list may get one that a gateway has seen. The text is nil if
// the caller has it already, as known says of the tag, and must not be changed.
//
// A list is encoded once for each time that it is written: to ask for the same one
// again takes a look at its revision.
//
// The caller has a list of that serial in use, 0 if none. If it is above that of the
// list here, as when this store was restored from a backup or made anew, what is
// written next gets one above it. Gateways ask every few seconds, so that it is known
// again soon after a start.
func (s *Service) ServedWorkers(ctx context.Context, id cellway.CellID, has cellway.Version, known func(tag string) bool) (text []byte, tag string, err error) {
	l, err := s.servedWorkers(ctx, id, known)
	if err == nil || errors.Is(err, cellway.ErrNotFound) && s.registered(id) {
		s.ahead.compare(id, has, l.serial)
	}
	if err != nil || known(l.tag) {
		return nil, l.tag, err
	}
	return l.text, l.tag, nil
}

// registered reports whether there is a cell of that id.
func (s *Service) registered(id cellway.CellID) bool {
	m := s.Accepted()
	return m != nil && m.Cell(id) != nil
}

func (s *Service) servedWorkers(ctx context.Context, id cellway.CellID, known func(tag string) bool) (l servedList, err error) {
	found := func() (bool, error) {
		var rev cellway.Revision
		if err := s.view(ctx, func(tx store.Tx) (err error) { rev, err = tx.Revision(kindWorkers, string(id)); return err }); err != nil {
			return false, err
		}
		l = s.served.get(id, rev)
		return l.tag != "" && (l.text != nil || known(l.tag)), nil
	}
	ok, err := found()
	if err == nil && !ok {
		// Of many gateways that ask for a new list, one has it encoded.
		turn := s.served.turn(id)
		if err := acquire(ctx, turn); err != nil {
			return l, err
		}
		defer func() { <-turn }()
		ok, err = found()
	}
	if ok || err != nil && !errors.Is(err, cellway.ErrNotFound) {
		return l, err
	}
	now := s.served.time()
	list, err := s.Workers(ctx, id) // and it says best why there is none
	if err != nil {
		return servedList{}, err
	}
	text, err := json.Marshal(list.Served())
	if err != nil {
		return servedList{}, err
	}
	sum := sha256.Sum256(text)
	l = servedList{list.Revision, list.Serial(), `"` + hex.EncodeToString(sum[:]) + `"`, append(text, '\n')}
	s.served.put(id, l, now)
	return l, nil
}

// A servedList is a list at a revision, encoded.
type servedList struct {
	revision cellway.Revision
	serial   cellway.Version
	tag      string
	text     []byte // nil: not kept
}

// servedLists are those that gateways asked for. Tags are kept of all, texts of as
// many as there is room for.
type servedLists struct {
	mu     sync.Mutex
	lists  map[cellway.CellID]servedList
	turns  map[cellway.CellID]chan struct{} // who has put a token into one encodes that list
	bytes  int                              // of texts
	clears int
}

// get returns the list of a cell at that revision, or nothing.
func (s *servedLists) get(id cellway.CellID, at cellway.Revision) servedList {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lists[id]; l.revision == at {
		return l
	}
	return servedList{}
}

func (s *servedLists) turn(id cellway.CellID) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns == nil {
		s.turns = map[cellway.CellID]chan struct{}{}
	}
	if s.turns[id] == nil {
		s.turns[id] = make(chan struct{}, 1)
	}
	return s.turns[id]
}

// time is another number after each clear.
func (s *servedLists) time() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clears
}

// put keeps a list that was read at that time or later.
func (s *servedLists) put(id cellway.CellID, l servedList, since int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since != s.clears {
		return
	}
	if s.lists == nil {
		s.lists = map[cellway.CellID]servedList{}
	}
	s.bytes += len(l.text) - len(s.lists[id].text)
	s.lists[id] = l
	for other, old := range s.lists {
		if s.bytes <= mostServed {
			return
		}
		if other != id {
			s.bytes -= len(old.text)
			old.text = nil
			s.lists[other] = old
		}
	}
}

// clear forgets all lists: revisions may come again with others.
func (s *servedLists) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists, s.bytes = nil, 0
	s.clears++
}
