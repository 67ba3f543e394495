//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// modulePath is the module of the checkout that the program must run in.
const modulePath = "github.com/cellway/cellway"

// A workshop finds the programs to measure, and builds those that it can.
type workshop struct {
	root    string // of the checkout
	install bool   // Debian's packages, where they are missing
	stderr  io.Writer
}

func newWorkshop(ctx context.Context, install bool, stderr io.Writer) (workshop, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return workshop{}, fmt.Errorf("find the checkout: %w; run this inside it", err)
	}
	return workshop{strings.TrimSpace(string(out)), install, stderr}, nil
}

// router builds the router of the checkout into dir.
func (w workshop) router(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "cellway-router")
	return path, w.build(ctx, w.root, path, "./cmd/cellway-router")
}

// peer returns the path of a peer's program, or why there is none.
func (w workshop) peer(ctx context.Context, name string) (path string, err error) {
	if name == caddyName {
		return w.caddy(ctx)
	}
	name = strings.TrimSuffix(name, withFields)
	if path, err = look(name); err == nil || !w.install {
		return path, err
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return "", fmt.Errorf("it is not installed, and installing it takes apt-get and root")
	}
	fmt.Fprintf(w.stderr, "installing Debian's package %s\n", name)
	for _, args := range [][]string{{"update", "-q"}, {"install", "-q", "-y", "--no-install-recommends", name}} {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			return "", fmt.Errorf("apt-get %s: %w: %s", args[0], err, lastLine(out))
		}
	}
	return look(name)
}

// look finds a program, also where only root's PATH leads.
func look(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if path, err := exec.LookPath(filepath.Join("/usr/sbin", name)); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("it is not installed")
}

// caddy builds Caddy, at the version in its own module file, into bench/out. It
// takes minutes the first time.
func (w workshop) caddy(ctx context.Context) (string, error) {
	path := filepath.Join(w.root, "bench", "out", caddyName)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		fmt.Fprintln(w.stderr, "building Caddy from its module; it takes some minutes")
	}
	return path, w.build(ctx, filepath.Join(w.root, "bench", "router", "caddy"), path, "github.com/caddyserver/caddy/v2/cmd/caddy")
}

func (w workshop) build(ctx context.Context, dir, path, pkg string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, lastLine(out))
	}
	return nil
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
