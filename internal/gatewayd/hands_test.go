package gatewayd

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway/gateway"
)

const page = "../../docs/operations/gateway.md"

// Whoever reads /hands finds each field of a worker and of a member on the page.
func TestThePageExplainsTheFieldsOfHands(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []reflect.Type{reflect.TypeFor[WorkerStatus](), reflect.TypeFor[gateway.HandMember](), reflect.TypeFor[ListFailing]()} {
		for field := range shown.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !strings.Contains(string(b), "`"+name+"`") {
				t.Errorf("%s does not explain %s of a %s", page, name, shown.Name())
			}
		}
	}
}

// The page's claim about the order of asking: with two members in good health,
// each gets some of a tenant's first requests.
func TestMembersInGoodHealthShareFirstRequests(t *testing.T) {
	c := newCell(t, 4, 2)
	p := c.start(c.args()...)
	hand, _ := p.hand("acme")
	asked := map[string]bool{}
	p.Eventually("both to be asked", func() error {
		_, body := p.get(p.Listen[0]+"/", "acme")
		who, _, _ := strings.Cut(body, " ")
		asked[who] = true
		if !asked[hand[0]] || !asked[hand[1]] {
			return fmt.Errorf("of %v only %v", hand, asked)
		}
		return nil
	})
}

// A list says how hands are dealt, and the page of hands shows it. A list that a design
// can't be dealt from leaves the last good one in use.
func TestHandsOfADesignAreDealtAndShown(t *testing.T) {
	c := newCell(t, 8, 2)
	design := func(n int) string {
		var all []string
		for i, w := range c.workers[:n] {
			all = append(all, fmt.Sprintf(`{"id": %q, "seat": %d, "endpoint": "http://%s"}`, w.id, i, w.addr))
		}
		return fmt.Sprintf(`{"deal": "quadruples", "size": 4, "numbers": {"acme": 3}, "workers": [%s]}`, strings.Join(all, ",\n"))
	}
	p := c.start(c.args()...)
	if _, s := p.hand("acme"); s.Deal != gateway.HRW1 || s.Overlap != nil {
		t.Errorf("dealt by %q, overlap %v", s.Deal, s.Overlap)
	}
	c.write("workers.json", design(8))
	p.Eventually("quadruples", func() error {
		p.get(p.Listen[0]+"/", "acme") // so that nobody stands in for who has never answered
		hand, s := p.hand("acme")
		if s.Deal != gateway.Quadruples || s.Overlap == nil || *s.Overlap != 2 || len(hand) != 4 || !strings.HasPrefix(s.Version, "quadruples-") {
			return fmt.Errorf("hand %v, dealt by %q, overlap %v, version %s", hand, s.Deal, s.Overlap, s.Version)
		}
		return nil
	})
	hand, _ := p.hand("acme")
	p.wantServed("acme", hand)
	c.write("workers.json", design(7))
	p.Eventually("the reason", func() error {
		now, s := p.hand("acme")
		if s.Failing == nil || !strings.Contains(s.Failing.Error, "7 workers: quadruples need a power of two; the nearest are 4 and 8") || !slices.Equal(now, hand) {
			return fmt.Errorf("%+v, hand %v", s.Failing, now)
		}
		return nil
	})
}

// Whoever wrote a list, or limits, is told what is wrong in words of these.
func TestErrorsOfFilesSpeakOfTheFiles(t *testing.T) {
	c := newCell(t, 2, 1)
	for text, want := range map[string]string{
		`{"size": "2", "workers": []}`:               `line 1: field "size" must be a whole number, not a text`,
		"{\"size\": 1,\n\"workers\": {\"id\": 1}}":   `line 2: field "workers" must be a list in brackets, not an object`,
		`{"size": 1, "workers": [{"weight": true}]}`: `line 1: field "workers[0].weight" must be a whole number, not true`,
		`{"size": 1, "wrokers": []}`:                 `unknown field "wrokers"; known are `,
	} {
		c.write("bad.json", text)
		wantCheck(t, c.args("--workers-file", c.path("bad.json"), "--check"), want)
	}
	c.write("limits.json", "{\"acme\": {\"rate\": 5},\n \"globex\": {\"rate\": \"5\"}}")
	wantCheck(t, c.args("--tenant-limits", c.path("limits.json"), "--check"), `line 2: field "globex.rate" must be a number, not a text`)
}

// wantCheck has a gateway that is started so refuse that with an error that says so.
func wantCheck(t *testing.T, args []string, want string) {
	t.Helper()
	err := Run(t.Context(), args, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
		t.Errorf("%v\nwant %s", err, want)
	}
}
