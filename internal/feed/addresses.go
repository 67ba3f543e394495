package feed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/routemap"
)

// maxAddresses is how many bytes the file of the last known addresses may have.
const maxAddresses = 64 << 20

// SaveAddresses keeps the last known addresses of names for the next start.
// It replaces what was kept, and logs and counts an error.
func (s *Store) SaveAddresses(names map[string][]netip.Addr) {
	s.files.Lock()
	defer s.files.Unlock()
	raw, err := json.Marshal(names)
	if len(raw) > maxAddresses-2*sha256.Size-1 {
		err = fmt.Errorf("the addresses of %d names take %d bytes: %w", len(names), len(raw), regular.ErrTooLarge)
	}
	if err == nil {
		sum := sha256.Sum256(raw)
		err = s.putSmall(addressesName, append(hex.AppendEncode(nil, sum[:]), append([]byte("\n"), raw...)...))
	}
	if err != nil {
		s.trouble.note(s.log, "write addresses", err)
	}
}

// Addresses returns what [Store.SaveAddresses] kept. If nothing was kept, or
// it can't be read, that is logged, and there are none.
func (s *Store) Addresses() map[string][]netip.Addr {
	s.files.Lock()
	defer s.files.Unlock()
	raw, err := s.disk.ReadFile(addressesName, maxAddresses)
	if isNotExist(err) {
		return nil
	}
	var names map[string][]netip.Addr
	if err == nil {
		names, err = decodeAddresses(raw)
	}
	if err != nil {
		s.trouble.note(s.log, "read addresses", err)
		return nil
	}
	s.small[addressesName] = raw
	return names
}

func decodeAddresses(raw []byte) (names map[string][]netip.Addr, err error) {
	sum, rest, _ := bytes.Cut(raw, []byte("\n"))
	want := sha256.Sum256(rest)
	if string(sum) != hex.EncodeToString(want[:]) {
		return nil, fmt.Errorf("kept addresses are damaged: %w", routemap.ErrDigest)
	}
	if err := json.Unmarshal(rest, &names); err != nil {
		return nil, fmt.Errorf("kept addresses: %w", err)
	}
	return names, nil
}
