package serving

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/boot"
)

func TestCheckReportsAsPeopleRead(t *testing.T) {
	var wrong Faults
	wrong.Invalid(boot.UsageError{Err: errors.New("loops: 3 is too many")})
	wrong.Note("tls-cert", errors.New("no such file"))
	for want, given := range map[string]struct {
		faults Faults
		doubts []error
	}{
		"ok\n":                                   {},
		"warning: workers: there are none\nok\n": {doubts: []error{fmt.Errorf("workers: there are none: %w", cellway.ErrInvalid)}},
		"warning: one\n":                         {faults: wrong, doubts: []error{errors.New("one")}},
	} {
		var out strings.Builder
		err := report(&out, &given.faults, given.doubts)
		if out.String() != want || (err != nil) != (given.faults.Err() != nil) {
			t.Errorf("said %q, %v, want %q", out.String(), err, want)
		}
	}
	if err := wrong.Err(); err.Error() != "loops: 3 is too many\ntls-cert: no such file" {
		t.Error(err)
	} else if _, usage := errors.AsType[boot.UsageError](err); usage {
		t.Error("the command line of a check is called wrong")
	}
}
