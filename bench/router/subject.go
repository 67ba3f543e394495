//go:build linux

package main

import (
	"debug/buildinfo"
	"embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
)

// peers holds the settings of every proxy.
//
//go:embed peers
var peers embed.FS

// A subject is a proxy that is measured.
type subject struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Keys    int    `json:"keys"` // in its map
	router  bool
	fields  bool   // it sends cells the fields that they get from a router
	file    string // of its settings, in peers
	env     []string
	args    []string // %s is the file of its settings
}

// settings fill in the templates in peers.
type settings struct {
	Fleet             string
	Dir               string // of what the proxy writes
	Map               string // folder of the map, in every form
	Plain, TLS, Admin string // host:port
	Cells             []namedCell
	Idle              int    // unused connections to a cell that are kept
	Clients           int    // more connections of clients than there will be
	Sockets           int    // more connections than there will be
	Files             uint64 // that a process may have open
	Cert, Key, Both   string // files
	AccessLog         string // file, or ""
	Root              bool
	Fields            bool // send cells what they get from a router
}

type namedCell struct{ Name, Addr string }

// The names of the subjects that come with the program.
const (
	routerName  = "router"
	nginxName   = "nginx"
	haproxyName = "haproxy"
	caddyName   = "caddy"
)

// withFields follows the name of a peer that sends cells the fields that they get
// from a router.
const withFields = "+fields"

// known lists the names of all subjects that come with the program.
func known() []string {
	return []string{routerName, nginxName, haproxyName, caddyName, nginxName + withFields, haproxyName + withFields}
}

// output is the file for what a proxy prints.
const output = "proxy.out"

// routerSubject is the router with so many keys and more arguments.
func routerSubject(name, path string, keys int, args []string) subject {
	return subject{Name: name, Version: version(path, "-version"), Keys: keys, router: true, file: "router.conf", args: append([]string{path, "--config", "%s"}, args...)}
}

// peerSubject returns a peer with so many keys, whose program is at path.
func peerSubject(name, path string, keys int, dir string) subject {
	program, fields := strings.CutSuffix(name, withFields)
	switch program {
	case nginxName:
		return subject{Name: name, Version: version(path, "-v"), Keys: keys, fields: fields, file: "nginx.conf", args: []string{path, "-c", "%s", "-p", dir}}
	case haproxyName:
		return subject{Name: name, Version: version(path, "-v"), Keys: keys, fields: fields, file: "haproxy.cfg", args: []string{path, "-db", "-f", "%s"}}
	default:
		return subject{
			Name: name, Version: moduleVersion(path, caddyModule), Keys: keys, file: "Caddyfile", args: []string{path, "run", "--adapter", "caddyfile", "--config", "%s"},
			env: []string{"HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir},
		}
	}
}

// version returns the first line of what a program says of itself.
func version(path, arg string) string {
	said, err := exec.Command(path, arg).CombinedOutput()
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	return strings.TrimPrefix(line, "nginx version: ")
}

const caddyModule = "github.com/caddyserver/caddy/v2"

// moduleVersion returns the version of a module that a program is built of.
func moduleVersion(path, module string) string {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for _, d := range append(info.Deps, &info.Main) {
		if d.Path == module {
			return module + " " + d.Version + " (" + info.GoVersion + ")"
		}
	}
	return "unknown"
}

// start starts the subject at a place, with its files in a folder of its own.
func (s subject) start(at place, set settings, scratch string) (*process, error) {
	text, err := peers.ReadFile("peers/" + s.file)
	if err != nil {
		return nil, err
	}
	t, err := template.New(s.file).Funcs(template.FuncMap{"port": port}).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	file := filepath.Join(scratch, s.file)
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := t.Execute(f, set); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	var args []string
	for _, a := range s.args {
		args = append(args, strings.ReplaceAll(a, "%s", file))
	}
	return launch(s.Name, at, filepath.Join(scratch, output), s.env, args...)
}

// port returns the port of an address, for settings that take it alone.
func port(addr string) (string, error) {
	_, port, err := net.SplitHostPort(addr)
	return port, err
}

// logOf returns the file of the subject's access log: HAProxy can only print
// it.
func (s subject) logOf(scratch string) string {
	if strings.HasPrefix(s.Name, haproxyName) {
		return filepath.Join(scratch, output)
	}
	return filepath.Join(scratch, "access.log")
}

// parseRouterArgs reads "NAME: ARGUMENTS".
func parseRouterArgs(s string) (name string, args []string, err error) {
	name, rest, ok := strings.Cut(s, ":")
	if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, ", /") {
		return "", nil, fmt.Errorf("%q is not \"NAME: ARGUMENTS\"", s)
	}
	return name, strings.Fields(rest), nil
}
