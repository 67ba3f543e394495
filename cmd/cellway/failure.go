package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/plaintext"
	"github.com/cellway/cellway/internal/shell"
)

// A failure is what a program is told of an error.
type failure struct {
	Code      string   `json:"code"`
	Error     string   `json:"error"`
	Mend      string   `json:"mend,omitempty"`
	Names     []string `json:"names,omitempty"` // what stands in the way: the first of it
	Total     int      `json:"total,omitempty"`
	RequestID string   `json:"request_id,omitempty"` // of a fault
}

// A mendable is an error that its command knows how to mend.
type mendable struct {
	error
	mend string
}

func (e mendable) Unwrap() error { return e.error }

// mend adds to an error what to do about it.
func mend(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return mendable{err, fmt.Sprintf(format, args...)}
}

// report tells what went wrong and how to mend it, and returns the exit code.
func (a *app) report(err error) int {
	a.quiet()
	k := kindOf(err)
	switch {
	case boot.HungUp(err):
		return boot.Hung
	case k.exit == exitOK, errors.Is(err, errAsked) && a.forPeople():
		return k.exit
	}
	refused, _ := errors.AsType[*client.Error](err)
	if refused != nil && refused.Code == api.CodeGate {
		a.reportGate(refused, err)
		return k.exit
	}
	f := failure{Code: k.code, Error: plain(err), Mend: a.own(strings.Join(a.mends(err), "\n"))}
	if k.code == "interrupted" {
		f.Error = "interrupted"
	}
	if refused != nil {
		f.Names, f.Total = refused.Names, refused.Total
		if refused.Code != "" && k.exit != exitFailed {
			f.Code = refused.Code
		}
		// What is not ready is told to everybody who asks, and logged for nobody.
		if (refused.Status >= 500 || refused.Status == 0) && refused.Code != api.CodeNotReady {
			f.RequestID = refused.RequestID
		}
	}
	if !a.forPeople() {
		a.reportTo(f)
		return k.exit
	}
	f.Error = plaintext.Show(a.own(f.Error))
	fmt.Fprintf(a.err, "cellway: %s\n", f.Error)
	if len(f.Names) > 0 {
		fmt.Fprintf(a.err, "  %s\n", some(f.Names, f.Total))
	}
	if f.Mend != "" {
		fmt.Fprintf(a.err, "  %s\n", strings.ReplaceAll(f.Mend, "\n", "\n  "))
	}
	if f.RequestID != "" {
		fmt.Fprintf(a.err, "  the control plane's log has it under request id %s\n", f.RequestID)
	}
	return k.exit
}

// reportTo writes a failure for programs.
func (a *app) reportTo(f failure) {
	text, err := a.encode(f)
	if err != nil {
		text = fmt.Appendf(nil, "cellway: %s\n", f.Error)
	}
	a.err.Write(text)
}

// mends are what may be done about an error.
func (a *app) mends(err error) (out []string) {
	if m, ok := errors.AsType[mendable](err); ok {
		out = append(out, m.mend)
	}
	from := func(text string) {
		if conn, err := a.resolve(); err == nil {
			text += fmt.Sprintf("the address %s comes from %s", conn.URL, conn.from)
		}
		out = append(out, text)
	}
	switch {
	case errors.Is(err, client.ErrUnauthenticated):
		out = append(out, "name a file with a token: --token-file FILE, CELLWAY_TOKEN_FILE, or a context (cellway context set -h)")
		if conn, err := a.resolve(); err == nil && conn.unread != nil {
			out = append(out, fmt.Sprintf("the contexts were left aside: %v", conn.unread))
		}
	case errors.Is(err, client.ErrCleartext):
		from("it speaks TLS: give its address with https://; ")
	case errors.Is(err, client.ErrForeign):
		from("give the address of a control plane, as in --url http://127.0.0.1:7700; ")
	case errors.Is(err, client.ErrUnanswered):
		out = append(out, "it may have been done all the same: look before you repeat the command")
	case errors.Is(err, fs.ErrExist):
		out = append(out, "no file is overwritten: name another one, or remove that one")
	case len(out) == 0 && errors.Is(err, cellway.ErrNeedsMove):
		out = append(out, "what can be done today: leave it in its cell; refuse it everywhere (cellway override set KEY --kind quarantine);",
			"or, only if no tenant of the fleet has data in its cell: cellway fleet set --stateless, then a pin")
	case len(out) == 0 && errors.Is(err, cellway.ErrNotFound):
		out = about(err, lists, " has those that there are")
	case len(out) == 0 && errors.Is(err, cellway.ErrExists):
		out = about(err, setters, " changes it")
	case errors.Is(err, cellway.ErrConflict):
		out = append(out, "somebody changed it meanwhile: look at it again, then repeat the command")
	case errors.Is(err, client.ErrUnreachable):
		from("")
	}
	return out
}

// lists are the commands that list what can be missing, by the word that an
// error of the control plane begins with.
var lists = map[string]string{
	"cell": "cellway cell list", "tenant": "cellway tenant list", "change": "cellway journal", "alias": "cellway alias list", "override": "cellway override list",
	"router": "cellway router list", "token": "cellway token list", "version": "cellway map versions",
}

// setters are the commands that change what is there already.
var setters = map[string]string{"cell": "cellway cell set", "tenant": "cellway tenant set", "fleet": "cellway fleet set"}

// about finds the command that helps with the record that a refusal of the control
// plane is about, if there is one and the refusal has not named one itself. Which record
// that is stands in the words of the refusal alone; others than those known here, as of
// another version, cost the hint and change nothing else.
func about(err error, commands map[string]string, text string) []string {
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || strings.Contains(refused.Detail, "; ") {
		return nil
	}
	kind, rest, _ := strings.Cut(strings.TrimPrefix(refused.Detail, "there is no "), " ")
	command := commands[strings.TrimSuffix(kind, ":")]
	if command == "" {
		return nil
	}
	if id, _, _ := strings.Cut(rest, ":"); strings.HasSuffix(command, " set") && !strings.HasSuffix(kind, ":") {
		if strings.Contains(id, " ") {
			return nil // more is told than that it exists, as that it is retired
		}
		command += " " + shell.Quote(id)
	}
	return []string{command + text}
}

// plain is an error as people read it.
func plain(err error) string {
	var wordless, others []error
	for _, k := range kinds() {
		if k.code == api.CodeInvalid || k.err == errState {
			wordless = append(wordless, k.err)
		} else {
			others = append(others, k.err)
		}
	}
	return boot.Plain(err, wordless, others)
}
