package fleet

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// Tenants is how many each cell has: a breaker opens only for the trouble of
// more than one.
const Tenants = 8

// TenantField is the field of a request that names its tenant.
const TenantField = "X-Tenant-Id"

// Tenant returns the n-th tenant of the cell with index i, whatever n is.
func Tenant(i, n int) string { return fmt.Sprintf("tenant-%d-%d", i+1, n%Tenants+1) }

// CellID returns the id of the cell with index i, from 0.
func CellID(i int) cellway.CellID { return cellway.CellID(fmt.Sprintf("cell-%03d", i+1)) }

// WriteMap writes a signed map that gives each cell its tenants. The cells are
// at addrs, each host:port. It returns the settings of a router that serves that
// map and keeps its state in dir, which must exist; dir can have one such map.
func WriteMap(dir, name string, addrs []string) (settings []string, err error) {
	c := routemap.Content{Settings: routemap.Settings{
		Fleet: name, Mapping: routemap.Full, Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: TenantField}},
	}}
	for i, addr := range addrs {
		c.Cells = append(c.Cells, cellway.Cell{ID: CellID(i), Endpoints: []string{"http://" + addr}, State: cellway.CellActive, Admit: 100})
		for n := range Tenants {
			c.Entries = append(c.Entries, cellway.Entry{Key: cellway.Key(Tenant(i, n)), Cell: CellID(i)})
		}
	}
	m, err := routemap.Build(c, 1)
	if err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	_, v, err := routemap.Publish(m, routemap.Publication{Version: 1, CreatedAt: time.Now(), Signers: []routemap.Signer{routemap.LocalSigner(private)}})
	if err != nil {
		return nil, err
	}
	file, keyring, state := filepath.Join(dir, "fleet.map"), filepath.Join(dir, "keyring"), filepath.Join(dir, "state")
	if err := errors.Join(os.WriteFile(file, v.Archive(), 0o600), os.WriteFile(keyring, routemap.Keyring{{Key: public}}.Format(), 0o600), os.Mkdir(state, 0o700)); err != nil {
		return nil, err
	}
	return []string{"--fleet", name, "--source", file, "--keyring", keyring, "--state-dir", state}, nil
}

// OK returns nil if a GET, as a tenant unless that is "", is answered 200.
func OK(ctx context.Context, c *http.Client, url, tenant string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if tenant != "" {
		req.Header.Set(TenantField, tenant)
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, res.Status)
	}
	return nil
}

// Healthy waits until each of so many cells has answered through the router at
// url for a moment.
func Healthy(ctx context.Context, c *http.Client, url string, cells int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("not within 30 seconds"))
	defer cancel()
	for well := 0; well < 5; {
		well++
		for i := range cells {
			if err := OK(ctx, c, url, Tenant(i, well)); err != nil {
				well = 0
				if ctx.Err() != nil {
					return fmt.Errorf("%s does not answer: %w (%w)", CellID(i), err, context.Cause(ctx))
				}
			}
		}
		if err := Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// Pause waits for d, or until ctx ends, whose cause it then returns.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
