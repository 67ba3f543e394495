package cellway_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An instruction is one line of a Dockerfile, continuation lines joined.
type instruction struct{ name, args string }

// stages reads a Dockerfile and returns its instructions, stage by stage; each
// stage begins with its FROM.
func stages(t *testing.T, file string) (all [][]instruction) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	known := list("FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "ENV", "ARG", "LABEL")
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, ok := strings.Cut(line, " ")
		if !ok || !slices.Contains(known, name) {
			t.Fatalf("%s: %q is no instruction", file, line)
		}
		if name == "FROM" {
			all = append(all, nil)
		}
		if len(all) == 0 {
			t.Fatalf("%s: %s before FROM", file, name)
		}
		all[len(all)-1] = append(all[len(all)-1], instruction{name, strings.TrimSpace(args)})
	}
	return all
}

// only returns the arguments of the one instruction of that name in a stage.
func only(t *testing.T, stage []instruction, name string) string {
	t.Helper()
	var found []string
	for _, i := range stage {
		if i.name == name {
			found = append(found, i.args)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d times %s in a stage, want one: %q", len(found), name, found)
	}
	return found[0]
}

// toolchain returns the version in go.mod's toolchain line.
func toolchain(t *testing.T) string {
	t.Helper()
	gomod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindSubmatch(gomod)
	if m == nil {
		t.Fatal("go.mod has no toolchain line")
	}
	return string(m[1])
}

func TestContainerFiles(t *testing.T) {
	for command, file := range map[string]string{
		"cellway-router":  "deploy/container/router.Dockerfile",
		"cellway-gateway": "deploy/container/gateway.Dockerfile",
		"cellway-control": "deploy/container/control.Dockerfile",
	} {
		t.Run(command, func(t *testing.T) {
			all := stages(t, file)
			if len(all) != 2 {
				t.Fatalf("%d stages, want two", len(all))
			}
			build, image := all[0], all[1]
			if want := "golang:" + toolchain(t) + " AS build"; build[0].args != want {
				t.Errorf("FROM %s, want %s, go.mod's toolchain", build[0].args, want)
			}
			if image[0].args != "scratch" {
				t.Errorf("the image is made from %s, want scratch", image[0].args)
			}
			binary := checkBuild(t, build, command)
			user := only(t, image, "USER")
			if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
				t.Errorf("USER %s: want numbers that are not root's, as a scratch image has no /etc/passwd", user)
			}
			checkImage(t, image, binary, user)
		})
	}
}

// checkBuild runs the go build line of a build stage, in this checkout, and
// returns the path where the stage puts the binary.
func checkBuild(t *testing.T, build []instruction, command string) (binary string) {
	t.Helper()
	for _, i := range build {
		if i.name == "COPY" {
			for _, src := range strings.Fields(i.args)[:len(strings.Fields(i.args))-1] {
				if _, err := os.Stat(src); err != nil {
					t.Errorf("COPY %s: %v", i.args, err)
				}
			}
		}
		if i.name != "RUN" || !strings.Contains(i.args, "go build ") {
			continue
		}
		m := regexp.MustCompile(` -o (\S+) \./cmd/(\S+)$`).FindStringSubmatch(i.args)
		if m == nil || m[2] != command {
			t.Fatalf("RUN %s does not build ./cmd/%s with -o", i.args, command)
		}
		binary = m[1]
		out := filepath.Join(t.TempDir(), command)
		line := strings.Replace(i.args, binary, out, 1)
		if text, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, text)
		}
		if text, err := exec.Command("sh", "-c", "file "+out).CombinedOutput(); err == nil && strings.Contains(string(text), "dynamically linked") {
			t.Errorf("%s makes a binary that needs a C library, which scratch lacks: %s", line, text)
		}
	}
	if binary == "" {
		t.Fatal("the build stage builds nothing")
	}
	return binary
}

// checkImage follows the files of the last stage.
func checkImage(t *testing.T, image []instruction, binary, user string) {
	t.Helper()
	has := map[string]string{} // path in the image: path in the build stage
	owned := map[string]bool{}
	for _, i := range image {
		if i.name == "COPY" {
			args := strings.Fields(i.args)
			if !slices.Contains(args, "--from=build") {
				t.Errorf("COPY %s: an image takes files from the build stage only", i.args)
			}
			src, dst := args[len(args)-2], args[len(args)-1]
			has[dst] = src
			owned[dst] = slices.Contains(args, "--chown="+user)
		}
	}
	if entry := strings.Trim(only(t, image, "ENTRYPOINT"), `[]"`); has[entry] != binary {
		t.Errorf("ENTRYPOINT %s is %q, want what was built: %s", entry, has[entry], binary)
	}
	if state := strings.Trim(only(t, image, "VOLUME"), `[]"`); has[state] == "" || !owned[state] {
		t.Errorf("VOLUME %s is not a folder of the image that belongs to %s: a new volume would be root's", state, user)
	}
	if has["/etc/ssl/certs/ca-certificates.crt"] == "" {
		t.Error("the image has no certificate authorities, so TLS to anything fails")
	}
}

// Container engines kill after ten seconds unless they are told to wait: the
// commands that the page shows give each daemon the time that its unit has.
func TestContainersMayEndInOrder(t *testing.T) {
	text, err := os.ReadFile("deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, m := range regexp.MustCompile(`(?m)^docker run ((?:.*\\\n)?.*)$`).FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(m[1], "--rm ") {
			continue // ends by itself
		}
		shown++
		name := regexp.MustCompile(`\s(cellway-[a-z]+) --config`).FindStringSubmatch(m[1])
		wait := regexp.MustCompile(`--stop-timeout (\d+)`).FindStringSubmatch(m[1])
		if name == nil || wait == nil {
			t.Errorf("%q names no daemon, or no --stop-timeout", m[1])
			continue
		}
		unit, err := os.ReadFile("deploy/systemd/" + name[1] + ".service")
		if err != nil {
			t.Fatal(err)
		}
		if has := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)s$`).FindSubmatch(unit); has == nil || string(has[1]) != wait[1] {
			t.Errorf("%s: --stop-timeout is %s, its unit has TimeoutStopSec %q", name[1], wait[1], has)
		}
	}
	if shown != 3 {
		t.Errorf("%d commands, want one for each daemon", shown)
	}
}

var unitFlag = regexp.MustCompile(` --?([a-z][a-z0-9-]*)`)

func TestSystemdUnits(t *testing.T) {
	for _, command := range list("cellway-router", "cellway-gateway", "cellway-control") {
		t.Run(command, func(t *testing.T) {
			unit := path.Join("deploy/systemd", command+".service")
			text, err := os.ReadFile(unit)
			if err != nil {
				t.Fatal(err)
			}
			settings := help(t, command)
			runs := 0
			for line := range strings.Lines(string(text)) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				if !strings.HasPrefix(key, "ExecStart") {
					continue
				}
				runs++
				if !strings.HasPrefix(value, "/usr/bin/"+command+" ") {
					t.Errorf("%s runs %s, want /usr/bin/%s", key, value, command)
				}
				for _, m := range unitFlag.FindAllStringSubmatch(value, -1) {
					if !regexp.MustCompile(`(?m)^\s+--?` + m[1] + `\b`).MatchString(settings) {
						t.Errorf("%s: %s has no setting %q", unit, command, m[1])
					}
				}
			}
			if runs == 0 {
				t.Error("the unit runs nothing")
			}
			for _, want := range list("NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateDevices=yes",
				"SystemCallFilter=@system-service", "StateDirectory="+command, "UMask=0077") {
				if !strings.Contains(string(text), "\n"+want) {
					t.Errorf("the unit lacks %s", want)
				}
			}
			verify(t, command, string(text))
		})
	}
}

// verify has systemd read the unit, where it is installed.
func verify(t *testing.T, command, unit string) {
	t.Helper()
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not installed; the unit was read only by this test")
		return
	}
	// The machine has neither our binaries nor our user.
	unit = strings.ReplaceAll(unit, "/usr/bin/"+command, filepath.Join(commands(t), command))
	unit = regexp.MustCompile(`(?m)^(User|Group)=.*\n`).ReplaceAllString(unit, "")
	file := filepath.Join(t.TempDir(), command+".service")
	if err := os.WriteFile(file, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
