package cellway

import (
	"fmt"
	"strings"
)

// MaxKeyPart is the length in bytes that neither the tenant nor the part of a
// key may exceed.
const MaxKeyPart = 128

// MaxKey is the length in bytes of the longest key: two parts and the slash.
const MaxKey = 2*MaxKeyPart + 1

// A TenantID names a tenant: 1 to 128 bytes of A-Z, a-z, 0-9 and ._~@:-.
// It is opaque and case-sensitive.
type TenantID string

// Validate reports the first rule that id breaks, as an [ErrInvalid].
func (id TenantID) Validate() error { return validPart("tenant", string(id)) }

// A Key is what a request is routed by: "tenant" or "tenant/part".
// The zero Key is not valid.
type Key string

// ParseKey returns s as a Key, or an [ErrInvalid] that names the rule s breaks.
func ParseKey(s string) (Key, error) {
	k := Key(s)
	return k, k.Validate()
}

// Tenant returns the part of k before the slash: the tenant that owns it.
func (k Key) Tenant() TenantID {
	t, _, _ := strings.Cut(string(k), "/")
	return TenantID(t)
}

// Part returns what follows the slash, or "" if k names a whole tenant.
func (k Key) Part() string {
	_, p, _ := strings.Cut(string(k), "/")
	return p
}

// IsComposite reports whether k has a part.
func (k Key) IsComposite() bool { return strings.IndexByte(string(k), '/') >= 0 }

// Validate reports the first rule that k breaks, as an [ErrInvalid].
func (k Key) Validate() error {
	tenant, part, composite := strings.Cut(string(k), "/")
	if err := validPart("tenant", tenant); err != nil {
		return err
	}
	if composite {
		return validPart("part", part)
	}
	return nil
}

// Valid reports whether k is a well-formed key. It is Validate without an
// error to build, for a request's path.
func (k Key) Valid() bool {
	n := 0
	composite := false
	for i := 0; i < len(k); i++ {
		switch c := k[i]; {
		case c == '/':
			if composite || n == 0 {
				return false
			}
			composite, n = true, 0
		case keyBytes[c]:
			if n++; n > MaxKeyPart {
				return false
			}
		default:
			return false
		}
	}
	return n > 0
}

// keyBytes marks the bytes that a tenant or a part may hold.
var keyBytes = func() (ok [256]bool) {
	for c := range ok {
		ok[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("._~@:-", byte(c)) >= 0
	}
	return ok
}()

func validPart(what, s string) error {
	if s == "" {
		return fmt.Errorf("%s is empty: give 1 to %d characters: %w", what, MaxKeyPart, ErrInvalid)
	}
	if len(s) > MaxKeyPart {
		return fmt.Errorf("%s %.20q… has %d bytes, at most %d are allowed: %w", what, s, len(s), MaxKeyPart, ErrInvalid)
	}
	for i := 0; i < len(s); i++ {
		if !keyBytes[s[i]] {
			return fmt.Errorf("%s %q: byte %q at %d is not one of A-Z a-z 0-9 . _ ~ @ : -: %w", what, s, s[i], i, ErrInvalid)
		}
	}
	return nil
}
