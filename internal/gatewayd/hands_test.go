package gatewayd

import (
	"fmt"
	"os"
	"reflect"
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
	p.eventually("both to be asked", func() error {
		_, body := p.get(p.listen[0]+"/", "acme")
		who, _, _ := strings.Cut(body, " ")
		asked[who] = true
		if !asked[hand[0]] || !asked[hand[1]] {
			return fmt.Errorf("of %v only %v", hand, asked)
		}
		return nil
	})
}
