//go:build linux

package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// fleetName is the name of the fleet that is measured.
const fleetName = "bench"

// cells is how many cells there are.
const cells = 4

// admit is what every cell admits of its keys. Since it is not 100, the router
// hashes the tenant of each request, as it does during an undrain.
const admit = 99

// digits is how many digits end the name of a tenant.
const digits = 7

// A tenantNumber names a tenant.
type tenantNumber int

func (n tenantNumber) name() string { return fmt.Sprintf("tenant-%0*d", digits, n) }

// cell returns the number of the tenant's cell, from 0.
func (n tenantNumber) cell() int { return int(n) % cells }

func cellName(i int) string { return fmt.Sprintf("cell-%03d", i+1) }

// tenants returns the first n tenants that are admitted.
func tenants(n int) []tenantNumber {
	all := make([]tenantNumber, 0, n)
	for i := tenantNumber(0); len(all) < n; i++ {
		sum := sha256.Sum256([]byte(i.name()))
		if binary.BigEndian.Uint64(sum[8:16]) < math.MaxUint64/100*admit {
			all = append(all, i)
		}
	}
	return all
}

// A mapping is what all proxies are told: which tenant is in which cell, and
// where the cells listen.
type mapping struct {
	tenants []tenantNumber
	cells   []string // host:port
}

// write writes the mapping for every proxy into a new folder.
func (m mapping) write(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	return errors.Join(
		m.writeRouterMap(in("fleet.map"), in("keyring")),
		m.writeLines(in("keys.nginx"), "%s %s;\n"),
		m.writeLines(in("keys.haproxy"), "%s %s\n"),
		m.writeLines(in("keys.caddy"), "%s %s\n"),
	)
}

// writeRouterMap writes a signed map, and the keyring that it is accepted by.
func (m mapping) writeRouterMap(file, keyring string) error {
	c := routemap.Content{Settings: routemap.Settings{
		Fleet: fleetName, Mapping: routemap.Full, Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}},
	}}
	for i, addr := range m.cells {
		c.Cells = append(c.Cells, cellway.Cell{
			ID: cellway.CellID(cellName(i)), Endpoints: []string{"http://" + addr}, State: cellway.CellCordoned, Admit: admit,
		})
	}
	for _, t := range m.tenants {
		c.Entries = append(c.Entries, cellway.Entry{Key: cellway.Key(t.name()), Cell: cellway.CellID(cellName(t.cell()))})
	}
	built, err := routemap.Build(c, 1)
	if err != nil {
		return err
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	_, v, err := routemap.Publish(built, routemap.Publication{Version: 1, CreatedAt: time.Now(), Signers: []routemap.Signer{routemap.LocalSigner(private)}})
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(file, v.Archive(), 0o644), os.WriteFile(keyring, routemap.Keyring{{Key: public}}.Format(), 0o644))
}

// writeLines writes a line of each tenant's name and its cell's, as format
// says.
func (m mapping) writeLines(file, format string) error {
	var b []byte
	for _, t := range m.tenants {
		b = fmt.Appendf(b, format, t.name(), cellName(t.cell()))
	}
	return os.WriteFile(file, b, 0o644)
}
