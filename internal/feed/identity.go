package feed

import (
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/regular"
)

var routerID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// ValidateRouterID reports an id that routers can't have, as a
// [cellway.ErrInvalid].
func ValidateRouterID(id string) error {
	if !routerID.MatchString(id) {
		return fmt.Errorf("router id %.80q must be up to 63 of a-z, 0-9 and -: %w", id, cellway.ErrInvalid)
	}
	return nil
}

// maxID is how many bytes the file of the router's id may have.
const maxID = 256

// RouterID returns the id under which this router reports: the one it had
// before, or a new one that it keeps. If that can't be kept, or the one before
// can't be read now, it is logged, and the id is good until the process ends.
func (s *Store) RouterID() string {
	s.files.Lock()
	defer s.files.Unlock()
	raw, err := s.disk.ReadFile(idName, maxID)
	if err == nil {
		id := strings.TrimSpace(string(raw))
		if err = ValidateRouterID(id); err == nil {
			s.small[idName] = raw
			return id
		}
	}
	fresh := isNotExist(err) || errors.Is(err, cellway.ErrInvalid) || errors.Is(err, regular.ErrTooLarge)
	if !isNotExist(err) {
		s.trouble.note(s.log, "read router id", err)
	}
	id := "router-" + strings.ToLower(rand.Text()[:16])
	if !fresh {
		return id // what is there may be read the next time
	}
	if err = s.putSmall(idName, []byte(id+"\n")); err != nil {
		s.trouble.note(s.log, "write router id", fmt.Errorf("%w; until it can be written the router has another name after each start, unless router-id gives it one", err))
	}
	return id
}
