//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway/bench/internal/fleet"
)

// mostIdleKiB is what an idle connection in cleartext may cost on the router's
// own server of HTTP/1.
const mostIdleKiB = 8

// An idleness is what connections cost that are idle.
type idleness struct {
	Server      string  `json:"server"`
	Over        string  `json:"over"`
	Did         string  `json:"each_has"`
	Connections int     `json:"connections"`
	WithoutMiB  float64 `json:"without_rss_mib"`
	WithMiB     float64 `json:"with_rss_mib"`
	KiBEach     float64 `json:"kib_each"`
	MostKiB     float64 `json:"most_kib,omitempty"` // 0: no bound
	Meets       bool    `json:"meets"`
}

// idleKinds are the kinds of idle connections: what each did before.
func idleKinds() []idleness {
	const silent, asked = "sent nothing", "had a request answered"
	return []idleness{
		{Server: "engine", Over: "cleartext", Did: silent, MostKiB: mostIdleKiB},
		{Server: "engine", Over: "cleartext", Did: asked, MostKiB: mostIdleKiB},
		{Server: "engine", Over: "TLS", Did: asked},
		{Server: "net/http", Over: "cleartext", Did: silent},
		{Server: "net/http", Over: "cleartext", Did: asked},
		{Server: "net/http", Over: "TLS", Did: asked},
	}
}

// idle measures what idle connections cost, each kind with a router of its own.
func (m *meter) idle(ctx context.Context, stderr io.Writer) (all []idleness, err error) {
	for i, kind := range idleKinds() {
		if kind, err = m.idleOf(ctx, kind, i); err != nil {
			return nil, fmt.Errorf("idle connections (%s, %s): %w", kind.Server, kind.Over, err)
		}
		all = append(all, kind)
		fmt.Fprintf(stderr, "measured %d idle connections: %s, %s\n", kind.Connections, kind.Server, kind.Over)
	}
	return all, nil
}

// placesFor returns how many connections a router must allow, so that one address
// can have n: it keeps the last eighth from those that have an eighth.
func placesFor(n int) int { return n + n/7 + 1000 }

func (m *meter) idleOf(ctx context.Context, k idleness, number int) (_ idleness, err error) {
	f, err := m.rig.start(ctx, "router-idle-"+strconv.Itoa(number), 0, "--http1", k.Server,
		"--max-connections", strconv.Itoa(placesFor(m.plan.idle)), "--idle-timeout", "10m", "--head-timeout", "10m")
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, f.process.Stop(ctx)) }()
	var roots *x509.CertPool
	if k.Over == "TLS" {
		roots = x509.NewCertPool()
		pem, err := os.ReadFile(filepath.Join(m.rig.dir, "router-idle-"+strconv.Itoa(number), "cert.pem"))
		if err != nil {
			return k, err
		}
		roots.AppendCertsFromPEM(pem)
	}
	asks := k.Did != idleKinds()[0].Did
	warm, err := openIdle(ctx, f, min(50, m.plan.idle), roots, asks)
	closeAll(warm)
	if err != nil {
		return k, err
	}
	if err := fleet.Pause(ctx, m.plan.rest); err != nil {
		return k, err
	}
	without, err := held(f.pid)
	if err != nil {
		return k, err
	}
	conns, err := openIdle(ctx, f, m.plan.idle, roots, asks)
	defer closeAll(conns)
	if err != nil {
		return k, err
	}
	if err := fleet.Pause(ctx, m.plan.rest); err != nil {
		return k, err
	}
	with, err := held(f.pid)
	if err != nil {
		return k, err
	}
	if stood := with.Descriptors - without.Descriptors; stood < len(conns)*99/100 {
		return k, fmt.Errorf("only %d of %d connections stand", stood, len(conns))
	}
	k.Connections, k.WithoutMiB, k.WithMiB = len(conns), without.MiB, with.MiB
	k.KiBEach = (with.MiB - without.MiB) * 1024 / float64(len(conns))
	k.Meets = k.MostKiB == 0 || k.KiBEach <= k.MostKiB
	return k, nil
}

// openIdle opens so many connections. Each has a request answered, if asks is
// true. It returns those that it opened also when it fails.
func openIdle(ctx context.Context, f *front, n int, roots *x509.CertPool, asks bool) (conns []net.Conn, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	var next atomic.Int64
	for range dialers {
		all.Go(func() {
			for next.Add(1) <= int64(n) && ctx.Err() == nil {
				c, failed := openOne(ctx, f, roots, asks)
				mu.Lock()
				if c != nil {
					conns = append(conns, c)
				}
				if failed != nil {
					err = failed
					next.Store(int64(n))
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return conns, errors.Join(err, context.Cause(ctx))
}

func openOne(ctx context.Context, f *front, roots *x509.CertPool, asks bool) (c net.Conn, err error) {
	d := &net.Dialer{Timeout: 10 * time.Second}
	if roots == nil {
		c, err = d.DialContext(ctx, "tcp", f.addr)
	} else {
		with := tls.Dialer{NetDialer: d, Config: &tls.Config{RootCAs: roots, ServerName: fleet.CertificateName, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS13}}
		c, err = with.DialContext(ctx, "tcp", f.tls)
	}
	if err != nil || !asks {
		return c, err
	}
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n"+fleet.TenantField+": "+fleet.Tenant(0, 0)+"\r\n\r\n"); err != nil {
		return c, err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return c, err
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return c, err
	}
	if res.StatusCode != http.StatusOK {
		return c, fmt.Errorf("answered %s", res.Status)
	}
	return c, nil
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		_ = c.Close() // nobody is left to tell
	}
}
