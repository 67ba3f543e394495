package control

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/plaintext"
	"github.com/cellway/cellway/internal/store"
)

// A Role says what a caller may do.
type Role string

// The roles. Each person's role includes the ones before it; the machines'
// stand alone.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Admin    Role = "admin"
	RouterIs Role = "router" // reads the map and reports
	CellIs   Role = "cell"   // looks up keys, reads its own list of workers
)

var roles = []Role{Viewer, Operator, Admin, RouterIs, CellIs}

// ParseRole reads the name of a role.
func ParseRole(s string) (Role, error) {
	if !slices.Contains(roles, Role(s)) {
		return "", fmt.Errorf("role %q is not one of viewer, operator, admin, router, cell: %w", s, cellway.ErrInvalid)
	}
	return Role(s), nil
}

// A Token is the record of a bearer token. Its secret is told once and stored
// only as a hash.
type Token struct {
	Revision  cellway.Revision `json:"-"`
	ID        string           `json:"id"`
	Name      string           `json:"name"` // whose it is, for the journal
	Role      Role             `json:"role"`
	Hash      string           `json:"hash"` // SHA-256 of the secret
	By        string           `json:"by"`
	CreatedAt time.Time        `json:"created_at"`
	ExpiresAt time.Time        `json:"expires_at,omitzero"` // zero: never
	Routers   string           `json:"routers,omitempty"`   // of a router's: as which it may report, see [Token.MayReport]
	Cells     string           `json:"cells,omitempty"`     // of a cell's: whose workers it may read, see [Token.MayServe]
}

// MayReport reports whether who has the token may report as the router id: any,
// if Routers is empty; those that begin with it, if it ends in *; else only the
// one that it names.
func (t Token) MayReport(id string) bool { return bound(t.Routers, id) }

// MayServe reports whether who has the token may read the list of workers of that
// cell, salt included: any, if Cells is empty; those that begin with it, if it ends
// in *; else only the one that it names.
func (t Token) MayServe(id cellway.CellID) bool { return bound(t.Cells, string(id)) }

// bound reports whether a token for ids is for id.
func bound(ids, id string) bool {
	prefix, many := strings.CutSuffix(ids, "*")
	return ids == "" || many && strings.HasPrefix(id, prefix) || ids == id
}

// CheckIDs reports ids that nobody of that role can be bound to, as an
// [cellway.ErrInvalid]: they are the id of a router or of a cell, or the beginning
// of ids followed by *.
func CheckIDs(role Role, ids string) error {
	prefix := strings.TrimSuffix(ids, "*")
	switch {
	case role == RouterIs && !routerID.MatchString(prefix):
		return fmt.Errorf("routers %.80q: give the id of a router, or the beginning of ids followed by *: %w", ids, cellway.ErrInvalid)
	case role == CellIs && cellway.CellID(prefix).Validate() != nil:
		return fmt.Errorf("cells %.80q: give the id of a cell, or the beginning of ids followed by *: %w", ids, cellway.ErrInvalid)
	case role != RouterIs && role != CellIs:
		return fmt.Errorf("%q: a %s is bound to no ids; leave them away: %w", ids, role, cellway.ErrInvalid)
	}
	return nil
}

const tokenPrefix = "cwt_"

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// CreateToken makes a token and tells its secret, which nobody can be told
// again. An expiry of zero is never. From the first token on everybody needs
// one, so the first is an admin's.
func (s *Service) CreateToken(ctx context.Context, call Call, name string, role Role, expires time.Time) (t Token, secret string, err error) {
	return s.createToken(ctx, call, Token{Name: name, Role: role, ExpiresAt: expires})
}

// CreateRouterToken makes a token for routers that may report under some ids
// only: one id, or a beginning of ids followed by *.
func (s *Service) CreateRouterToken(ctx context.Context, call Call, name, ids string, expires time.Time) (t Token, secret string, err error) {
	if err := CheckIDs(RouterIs, ids); err != nil {
		return t, "", err
	}
	return s.createToken(ctx, call, Token{Name: name, Role: RouterIs, ExpiresAt: expires, Routers: ids})
}

// CreateCellToken makes a token for the gateways of some cells only: one id, or a
// beginning of ids followed by *.
func (s *Service) CreateCellToken(ctx context.Context, call Call, name, ids string, expires time.Time) (t Token, secret string, err error) {
	if err := CheckIDs(CellIs, ids); err != nil {
		return t, "", err
	}
	return s.createToken(ctx, call, Token{Name: name, Role: CellIs, ExpiresAt: expires, Cells: ids})
}

// createToken makes a token of what set says of it.
func (s *Service) createToken(ctx context.Context, call Call, set Token) (t Token, secret string, err error) {
	name, role, expires := set.Name, set.Role, set.ExpiresAt
	if _, err := ParseRole(string(role)); err != nil {
		return t, "", err
	}
	if name == "" || len(name) > 128 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return t, "", fmt.Errorf("a token needs a name of 1 to 128 plain characters: %w", cellway.ErrInvalid)
	}
	if err := plaintext.CheckName("token", name); err != nil {
		return t, "", err
	}
	if !expires.IsZero() && !expires.After(time.Now()) {
		return t, "", fmt.Errorf("token %s would expire at %s, which has passed: %w", name, expires.Format(time.RFC3339), cellway.ErrInvalid)
	}
	secret = tokenPrefix + rand.Text()
	t = set
	t.ID, t.Hash, t.By, t.ExpiresAt = strings.ToLower(rand.Text()[:12]), hashSecret(secret), call.Who, expires.UTC()
	_, err = s.write(ctx, call, func(w *work) error {
		others, err := w.tx.Count(kindToken, "")
		if err != nil {
			return err
		}
		if others == 0 && role != Admin {
			return fmt.Errorf("the first token must be an admin's, so make one of the role admin first: from then on everybody needs one, and a %s could make no other: %w", role, cellway.ErrInvalid)
		}
		t.CreatedAt = w.now
		t.Revision, err = put(w.tx, kindToken, t.ID, 0, t, "hash="+t.Hash, "role="+string(t.Role))
		w.aside = true
		w.record("token.create", "token/"+t.ID, nil, t.public())
		return err
	})
	return t.public(), secret, err
}

// public is the token without its hash.
func (t Token) public() Token { t.Hash = ""; return t }

// Tokens lists tokens by id, without hashes.
func (s *Service) Tokens(ctx context.Context, after string, limit int) (p Page[Token], err error) {
	err = s.view(ctx, func(tx store.Tx) error {
		p, err = page(tx, kindToken, "", after, limit, setTokenRevision)
		return err
	})
	for i := range p.Items {
		p.Items[i] = p.Items[i].public()
	}
	return p, err
}

// DeleteToken ends a token at once. The last one of an admin that is still good
// goes last of all.
func (s *Service) DeleteToken(ctx context.Context, call Call, id string) error {
	_, err := s.write(ctx, call, func(w *work) error {
		t, err := get(w.tx, kindToken, id, setTokenRevision)
		if err != nil {
			return err
		}
		all, err := w.tx.Count(kindToken, "")
		if err != nil {
			return err
		}
		if t.Role == Admin && t.good(w.now) && all > 1 {
			others := 0
			if err := each(w.tx, kindToken, "role="+string(Admin), setTokenRevision, func(o Token) error {
				if o.ID != id && o.good(w.now) {
					others++
				}
				return nil
			}); err != nil {
				return err
			}
			if others == 0 {
				return fmt.Errorf("token %s is the only admin's; make another one before you delete it: %w", id, cellway.ErrInUse)
			}
		}
		w.aside = true
		w.record("token.delete", "token/"+id, t.public(), nil)
		return w.tx.Delete(kindToken, id, t.Revision)
	})
	return err
}

func setTokenRevision(t *Token, r cellway.Revision) { t.Revision = r }

// good reports whether a token has not expired.
func (t Token) good(now time.Time) bool { return t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt) }

// Authenticate returns the token with that secret. What is unknown or expired
// is an [cellway.ErrForbidden]. The secret is looked up by its hash: how long
// that takes tells nothing of any other secret.
func (s *Service) Authenticate(ctx context.Context, secret string) (t Token, err error) {
	if !strings.HasPrefix(secret, tokenPrefix) {
		return t, fmt.Errorf("that is not a token of this control plane: %w", cellway.ErrForbidden)
	}
	err = s.view(ctx, func(tx store.Tx) error {
		p, err := page(tx, kindToken, "hash="+hashSecret(secret), "", 1, setTokenRevision)
		if err != nil {
			return err
		}
		if len(p.Items) == 0 {
			return fmt.Errorf("unknown token: %w", cellway.ErrForbidden)
		}
		t = p.Items[0]
		if !t.good(time.Now()) {
			return fmt.Errorf("token %s expired at %s: %w", t.Name, t.ExpiresAt.Format(time.RFC3339), cellway.ErrForbidden)
		}
		return nil
	})
	return t.public(), err
}

// HasTokens reports whether any token exists, so that whoever serves the API
// knows whether it may listen to more than this machine.
func (s *Service) HasTokens(ctx context.Context) (has bool, err error) {
	err = s.view(ctx, func(tx store.Tx) error {
		n, err := tx.Count(kindToken, "")
		has = n > 0
		return err
	})
	return has, err
}
