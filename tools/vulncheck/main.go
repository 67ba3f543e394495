// Command vulncheck fails if code of a module reaches a known vulnerability
// that is not excused by a dated line of an allow-list.
//
// It runs govulncheck, pinned in this module, over the data of the
// golang.org/x/vulndb module, which comes through the module proxy, at a pinned
// version, with a checksum. So the answer is the same on every machine, and no
// other server is asked.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	dir := flag.String("dir", "..", "directory of the module to check")
	allow := flag.String("allow", "vuln-allow.txt", "file with the findings that are excused for a while")
	db := flag.String("db", "vulndb.version", "file with the version of golang.org/x/vulndb to use")
	flag.Parse()
	if err := run(*dir, *allow, *db); err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		os.Exit(1)
	}
}

func run(dir, allowFile, versionFile string) error {
	text, err := os.ReadFile(allowFile)
	if err != nil {
		return err
	}
	allowed, err := parseAllow(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s: %w", allowFile, err)
	}
	version, err := os.ReadFile(versionFile)
	if err != nil {
		return err
	}
	data, err := download(strings.TrimSpace(string(version)))
	if err != nil {
		return err
	}
	var out, complaint bytes.Buffer
	cmd := exec.Command("go", "tool", "govulncheck", "-C", dir, "-format", "json", "-db", "file://"+data, "./...")
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("govulncheck: %w\n%s", err, complaint.Bytes())
	}
	found, err := reached(&out)
	if err != nil {
		return fmt.Errorf("read govulncheck's answer: %w", err)
	}
	bad := judge(found, allowed, time.Now())
	if len(bad) > 0 {
		return errors.New(strings.Join(bad, "\n"))
	}
	return nil
}

// download returns the folder of vulnerability records in the given version of
// the vulndb module.
func download(version string) (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", "golang.org/x/vulndb@"+version).Output()
	var mod struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &mod); jsonErr != nil && err == nil {
		err = jsonErr
	}
	if mod.Error != "" {
		err = errors.New(mod.Error)
	}
	if err != nil {
		return "", fmt.Errorf("download golang.org/x/vulndb@%s: %w", version, err)
	}
	return filepath.Join(mod.Dir, "data", "osv"), nil
}

// A finding is a vulnerability that the code reaches, with one way to it.
type finding struct {
	fixed string // the version that mends it, if any
	via   string // the function of ours that leads to it
}

// reached reads govulncheck's JSON stream and returns, by id, the
// vulnerabilities whose vulnerable function is called. Those that are merely
// linked are left out, as govulncheck itself does.
func reached(r io.Reader) (map[string]finding, error) {
	found := map[string]finding{}
	scanned := false
	for dec := json.NewDecoder(r); ; {
		var message struct {
			Config  *struct{}
			Finding *struct {
				OSV          string `json:"osv"`
				FixedVersion string `json:"fixed_version"`
				Trace        []struct {
					Module, Version, Package, Function, Receiver string
				}
			}
		}
		err := dec.Decode(&message)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		scanned = scanned || message.Config != nil
		f := message.Finding
		if f == nil || len(f.Trace) == 0 || f.Trace[0].Function == "" {
			continue
		}
		first, last := f.Trace[0], f.Trace[len(f.Trace)-1]
		found[f.OSV] = finding{
			fixed: fmt.Sprintf("%s@%s, mended in %s", first.Module, first.Version, cmp.Or(f.FixedVersion, "no version")),
			via:   strings.TrimPrefix(last.Package+"."+last.Receiver+"."+last.Function, "."),
		}
	}
	if !scanned {
		return nil, errors.New("it is empty")
	}
	return found, nil
}

// An excuse lets one finding pass until the end of a day.
type excuse struct {
	until  time.Time
	reason string
}

// parseAllow reads lines of "ID until reason"; # starts a comment line.
func parseAllow(r io.Reader) (map[string]excuse, error) {
	allowed := map[string]excuse{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 3 {
			return nil, fmt.Errorf("line %d: want an id, a date and a reason", n)
		}
		until, err := time.Parse(time.DateOnly, fields[1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %q is not a date such as 2026-12-31", n, fields[1])
		}
		if _, twice := allowed[fields[0]]; twice {
			return nil, fmt.Errorf("line %d: %s is listed twice", n, fields[0])
		}
		allowed[fields[0]] = excuse{until: until.AddDate(0, 0, 1), reason: strings.Join(fields[2:], " ")}
	}
	return allowed, lines.Err()
}

// judge returns a line for each finding without a valid excuse, then one for
// each excuse without a finding, both in order of id.
func judge(found map[string]finding, allowed map[string]excuse, now time.Time) (bad []string) {
	for _, id := range slices.Sorted(maps.Keys(found)) {
		f, e := found[id], allowed[id]
		switch {
		case e.reason == "":
			bad = append(bad, fmt.Sprintf("%s in %s, reached from %s", id, f.fixed, f.via))
		case !now.Before(e.until):
			bad = append(bad, fmt.Sprintf("%s in %s, reached from %s: its excuse has ended (%s)", id, f.fixed, f.via, e.reason))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(allowed)) {
		if _, ok := found[id]; !ok {
			bad = append(bad, id+" is no longer found: remove its line from the allow-list")
		}
	}
	return bad
}
