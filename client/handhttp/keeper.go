package handhttp

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/cellway/cellway/shuffle"
)

// formers is how many versions a Keeper remembers.
const formers = 64

// A Keeper is a worker's side of hands: a handler before the worker's own. A
// request whose client says that it goes by hands that are old, and whose tenant does
// not have this worker in its hand any more, is answered 421 with the version of
// the new hands in X-Cell-Hand. It did not run, and a [Transport] asks again
// with the tenant's new hand, once.
//
// Everything else is served: requests of those who know no hands, or newer ones
// than this worker, those of a tenant whose hand still has it, and those of one whose
// hand can't be told. Hands contain failures; they let nobody in or out.
//
// Only [NewKeeper] makes useful ones.
type Keeper struct {
	worker string
	next   http.Handler
	known  atomic.Pointer[kept]
}

// kept is the hands in use, and the versions of those before, the latest last.
type kept struct {
	hands  Hands
	former []string
}

// NewKeeper returns a handler before next for the worker of this id. The error
// wraps [shuffle.ErrInvalid] if something is missing.
func NewKeeper(worker string, hands Hands, next http.Handler) (*Keeper, error) {
	if worker == "" || hands == nil || next == nil {
		return nil, fmt.Errorf("a keeper needs the id of its worker, hands, and a handler: %w", shuffle.ErrInvalid)
	}
	k := &Keeper{worker: worker, next: next}
	k.known.Store(&kept{hands: hands})
	return k, nil
}

// Use has requests from now on judged by hands. Those in use before are old
// ones then.
func (k *Keeper) Use(hands Hands) {
	for {
		old := k.known.Load()
		version := old.hands.Version()
		if version == hands.Version() {
			return
		}
		// What comes back, as after a change that was taken back, is not old any more.
		former := slices.DeleteFunc(slices.Clone(old.former), func(v string) bool { return v == version || v == hands.Version() })
		former = append(former, version)
		former = former[max(0, len(former)-formers):]
		if k.known.CompareAndSwap(old, &kept{hands, former}) {
			return
		}
	}
}

func (k *Keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	known := k.known.Load()
	if by := r.Header.Get(HandHeader); by == "" || !slices.Contains(known.former, by) {
		k.next.ServeHTTP(w, r)
		return
	}
	hand, err := known.hands.Hand(r.Context(), r.Header.Get(TenantHeader))
	if err != nil || len(hand) == 0 || slices.ContainsFunc(hand, func(m Member) bool { return m.ID == k.worker }) {
		k.next.ServeHTTP(w, r)
		return
	}
	version := known.hands.Version()
	w.Header().Set(HandHeader, version)
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "worker "+k.worker+" is not in the tenant's hand any more; go by version "+version+" of the hands", http.StatusMisdirectedRequest)
}
