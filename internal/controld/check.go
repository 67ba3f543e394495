package controld

import (
	"errors"
	"fmt"
	"net"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/sqlitestore"
)

// Check finds all that is wrong with c and with the files that it names. It
// makes nothing, and leaves a control plane alone that runs with c: the store is
// not opened, but for its beginning.
func (c Config) Check() error {
	if err := c.validate(); err != nil {
		return err
	}
	var errs []error
	bad := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	_, _, err := c.tlsConfig()
	bad("tls", err)
	bad("store", c.checkState())
	if c.PublishDir != "" {
		bad("publish-dir", control.CheckDirSink(c.PublishDir))
	}
	addr, err := net.ResolveTCPAddr("tcp", c.listen())
	bad("listen", err)
	if err == nil && c.TLSCert == "" && !c.PlainHTTP && !addr.IP.IsLoopback() {
		bad("listen", fmt.Errorf("%s can be reached from other machines and has no TLS: give tls-cert and tls-key, or say plain-http if a proxy in front does TLS: %w", c.listen(), cellway.ErrForbidden))
	}
	if c.Admin != "" {
		_, err := net.ResolveTCPAddr("tcp", c.Admin)
		bad("admin", err)
	}
	return errors.Join(errs...)
}

// checkState is [Config.prepare] and the reading of keys, without making any.
func (c Config) checkState() error {
	if c.Store == Memory {
		return readable(c.Keys)
	}
	store, err := exists(c.Store)
	if err != nil {
		return err
	}
	if !store && !c.Init {
		return missing("store", c.Store)
	}
	if store {
		if err := sqlitestore.CheckFile(c.Store); err != nil {
			return err
		}
	}
	if len(c.Keys) > 0 {
		first, err := exists(c.Keys[0])
		switch {
		case err != nil:
			return err
		case !first && store:
			return keyGone(c.Store, c.Keys[0])
		case !first: // it is made with the store
			return readable(c.Keys[1:])
		}
	}
	_, err = c.signers()
	return err
}
