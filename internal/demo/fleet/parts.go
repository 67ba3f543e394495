package fleet

import (
	"fmt"
	"strings"

	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/demo/role"
)

// ControlName is the name of the control plane's process.
const ControlName = "control"

// addControl prepares the control plane and what talks to it.
func (f *Fleet) addControl(addr, mirrorAddr string) error {
	dir, err := f.folder(ControlName)
	if err != nil {
		return err
	}
	signing, trusted, ring, err := makeKey(dir)
	if err != nil {
		return err
	}
	f.ring, f.trusted = ring, trusted
	url := "http://" + addr
	if f.api, err = client.New(client.Config{URL: url, UserAgent: "cellway-demo"}); err != nil {
		return err
	}
	if f.mirror, err = newMirror(mirrorAddr, url, f.cfg.Log); err != nil {
		return err
	}
	f.control = f.child(ControlName, role.Control, []string{"--listen", addr, "--data", dir, "--key", signing}, url+"/readyz", quick)
	return nil
}

// addRouter prepares a router.
func (f *Fleet) addRouter(name, addr, admin string) (*part, error) {
	dir, err := f.folder(name)
	if err != nil {
		return nil, err
	}
	p := &part{url: "http://" + addr, admin: "http://" + admin, args: []string{
		"--id", name, "--listen", addr, "--admin", admin, "--source", f.mirror.URL(), "--keyring", f.trusted, "--state", dir, "--fleet", Name,
	}}
	p.Process = f.child(name, role.Router, p.args, p.admin+"/readyz", quick)
	return p, nil
}

// Logs returns the last lines of every process's output, for when something
// went wrong.
func (f *Fleet) Logs(lines int) string {
	var s strings.Builder
	for _, p := range f.group.Children() {
		if tail := p.Tail(lines); tail != "" {
			fmt.Fprintf(&s, "--- %s\n%s\n", p.Status().Name, tail)
		}
	}
	return s.String()
}
