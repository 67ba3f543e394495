package feed

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cellway/cellway/routemap"
)

// Whatever a map can be refused for, wherever that is found out, has a reason:
// an error without one is the source's, and the map is asked for again at once.
func TestEveryRefusalHasAReason(t *testing.T) {
	for err, want := range map[error]string{
		routemap.ErrFormat: ReasonFormat, routemap.ErrCheck: ReasonFormat, routemap.ErrTooNew: ReasonTooNew, routemap.ErrDigest: ReasonDigest,
		routemap.ErrUntrusted: ReasonUntrusted, routemap.ErrFleet: ReasonFleet, routemap.ErrScope: ReasonScope, routemap.ErrMapFork: ReasonFork,
		routemap.ErrOld: ReasonOld, routemap.ErrGateCounts: ReasonGate, ErrShort: ReasonDigest,
		errSuspect: ReasonSuspect, errMapPanic: ReasonPanic, errSwap: ReasonSwap,
	} {
		if got, ok := reasonOf(fmt.Errorf("map 1.1: %w", err)); !ok || got != want || !slices.Contains(Reasons(), got) {
			t.Errorf("%v has reason %q, want %q", err, got, want)
		}
	}
}
