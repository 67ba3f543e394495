package controld

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/lines"
)

// Memory is the store that lives in memory and ends with the process.
const Memory = "memory"

// Config says how the control plane runs.
type Config struct {
	Listen string // address of the API; if empty, 127.0.0.1:7700
	Admin  string // address for metrics and health; if empty, none

	Store string   // path of the SQLite file, or Memory
	Keys  []string // files of signing keys; more than one while they rotate

	// Signer is a program that signs, with its arguments, in the place of a key
	// file; SignerKey is its public key in base64.
	Signer    []string
	SignerKey string

	// Init makes the store and the signing key if neither is there. Without it
	// they must be: a control plane that starts empty because a disk is not
	// mounted would publish an empty map.
	Init bool

	PublishDir string // where each version is written too; if empty, nowhere

	TLSCert, TLSKey string // certificate of the API, in PEM; both or neither
	ClientCA        string // authorities of client certificates, in PEM
	ClientRoles     string // file of roles for client certificates

	// PlainHTTP allows an address beyond loopback without TLS, for a proxy in
	// front that does it.
	PlainHTTP bool

	// Routers are the ids of all routers, where they are known from the start,
	// as in a process that runs the only one. If empty, there may be any.
	Routers []string

	ShutdownTimeout time.Duration // if zero, 15 seconds
	Log             *slog.Logger  // nil discards
	LogLines        *lines.Writer // what Log writes to, to be counted; may be nil
}

func (c Config) listen() string {
	if c.Listen == "" {
		return "127.0.0.1:7700"
	}
	return c.Listen
}

func (c Config) shutdownTimeout() time.Duration {
	if c.ShutdownTimeout == 0 {
		return 15 * time.Second
	}
	return c.ShutdownTimeout
}

func (c Config) log() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}

// validate finds what is wrong with c alone.
func (c Config) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("control plane: %s: %w", fmt.Sprintf(format, args...), cellway.ErrInvalid)
	}
	switch {
	case c.Store == "":
		return bad("no store; name a file, or %q", Memory)
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return bad("tls-cert and tls-key go together; one is missing")
	case c.ClientCA != "" && c.TLSCert == "":
		return bad("client-ca needs tls-cert and tls-key: client certificates are part of TLS")
	case (c.ClientCA == "") != (c.ClientRoles == ""):
		return bad("client-ca and client-roles go together: the one says which certificates are genuine, the other what their names may do")
	case len(c.Signer) > 0 && len(c.Keys) > 0:
		return bad("both a signing key file and a signing program are given; leave one away")
	case (len(c.Signer) > 0) != (c.SignerKey != ""):
		return bad("signer and signer-key go together; one is missing")
	case len(c.Signer) == 0 && len(c.Keys) == 0 && c.Store != Memory:
		return bad("no signing key; name its file")
	}
	return nil
}

// loopback reports whether addr is reachable from this machine only.
func loopback(addr net.Addr) bool {
	ap, err := netip.ParseAddrPort(addr.String())
	return err == nil && ap.Addr().IsLoopback()
}

// prepare makes the store's key on request, and refuses to make what should
// exist: of store and key either both are there, or neither.
func (c Config) prepare() (create bool, err error) {
	if c.Store == Memory {
		return true, nil
	}
	store, err := exists(c.Store)
	if err != nil {
		return false, err
	}
	if len(c.Keys) == 0 { // another program signs
		if !store && !c.Init {
			return false, missing("store", c.Store)
		}
		return !store, nil
	}
	first := c.Keys[0]
	key, err := exists(first)
	switch {
	case err != nil:
		return false, err
	case store && key:
		return false, nil
	case store:
		return false, keyGone(c.Store, first)
	case !c.Init:
		return false, missing("store", c.Store)
	case !key:
		// Nothing is made of an init that can't be whole.
		if err := readable(c.Keys[1:]); err != nil {
			return false, err
		}
		return true, NewKeyFile(first, rand.Reader)
	}
	return true, nil // a key made before, on purpose, as for routers that know it already
}

func keyGone(store, key string) error {
	return fmt.Errorf("store %s is there, its signing key %s is not: routers believe no other key, so bring it back; to change it, see docs/operations/keys.md: %w", store, key, cellway.ErrNotFound)
}

func missing(what, path string) error {
	return fmt.Errorf("%s %s does not exist; check the path and whether its disk is mounted, or make a new one with cellway-control init: %w", what, path, cellway.ErrNotFound)
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
