package control

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// However often a restore is confirmed, the head record stays small, and what it
// forgets it forgets towards an alarm.
func TestLossesAreBoundedAndForgetNoMapThatWasLost(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var h headRecord
	lost := func(i int) cellway.Version { return cellway.NewVersion(uint32(2*i+1), 10) }
	const n = 5 * maxLosses
	for i := range n {
		h.lose(loss{At: now.Add(time.Duration(i) * time.Minute), Unknown: unknown{Above: lost(i) - 1, Below: uint32(2*i + 2)}})
		if len(h.Confirmed) > maxLosses {
			t.Fatalf("%d losses are kept", len(h.Confirmed))
		}
	}
	for i := range n {
		if aftermath(h.Confirmed).of(lost(i)) == nil {
			t.Errorf("%v is forgotten", lost(i))
		}
	}
	h.lose(loss{At: now.Add(knowFor + n*time.Minute), Unknown: unknown{Above: 1, Below: 1}})
	if len(h.Confirmed) != 1 {
		t.Errorf("%d are kept after a week", len(h.Confirmed))
	}
}

// A map that was undone is told until a person has seen it, however long that takes.
func TestAnUndoneMapOutlivesTheWeekAndTheBound(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	u := Undone{Version: cellway.NewVersion(1, 11)}
	h := headRecord{Confirmed: losses{{At: now, Unknown: unknown{Above: cellway.NewVersion(1, 10), Below: 2}, Undone: &u}}}
	for i := range 2 * maxLosses {
		h.lose(loss{At: now.Add(2 * knowFor), Unknown: unknown{Above: cellway.NewVersion(uint32(10+i), 1), Below: uint32(11 + i)}})
	}
	if got := h.aftermath().undone(); got == nil || *got != u {
		t.Fatalf("told is %+v", got)
	}
	if h.see(u); h.aftermath().undone() != nil {
		t.Error("seen, and still told")
	}
	if h.aftermath().of(u.Version) != nil {
		t.Error("another alarm is due for what was seen")
	}
}

func TestALossOfARecordFromBeforeThereWereSeveralIsKept(t *testing.T) {
	var h headRecord
	old := `{"seq":3,"incarnation":7,"confirmed":{"at":"2026-11-30T12:00:00Z","unknown":{"above":"1.10","below":5}}}`
	if err := json.Unmarshal([]byte(old), &h); err != nil {
		t.Fatal(err)
	}
	if len(h.Confirmed) != 1 || !h.Confirmed[0].Unknown.has(cellway.NewVersion(4, 1)) {
		t.Fatalf("read is %+v", h.Confirmed)
	}
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var again headRecord
	if err := json.Unmarshal(b, &again); err != nil || len(again.Confirmed) != 1 || again.Confirmed[0] != h.Confirmed[0] {
		t.Errorf("read back is %+v, %v", again.Confirmed, err)
	}
}
