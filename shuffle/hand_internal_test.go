package shuffle

import (
	"fmt"
	"testing"
)

// Equal scores never come up by chance, but the order is defined: workers by id,
// zones by name, however many there are and however they are searched.
func TestEqualScoresGoByName(t *testing.T) {
	for _, n := range []int{10, 300} {
		for _, k := range []int{1, 7, 10, 257, 300} {
			if k > n {
				continue
			}
			even, weighted := zone{first: nil}, zone{}
			for i := range n {
				w := Worker{ID: fmt.Sprintf("w-%03d", i), Weight: 1}
				even.workers, weighted.workers = append(even.workers, w), append(weighted.workers, w)
				even.keys = append(even.keys, 5)
				weighted.first = append(weighted.first, uint32(len(weighted.keys)))
				weighted.keys = append(weighted.keys, 5, 5)
			}
			weighted.first = append(weighted.first, uint32(len(weighted.keys)))
			for _, z := range []zone{even, weighted} {
				for i, w := range z.appendBest(nil, 1, k) {
					if w.ID != z.workers[i].ID {
						t.Fatalf("%d of %d with equal scores: place %d has %s", k, n, i, w.ID)
					}
				}
			}
		}
	}
	s, err := NewSnapshot(Config{Size: 2, Workers: []Worker{{ID: "a", Zone: "z", Weight: 1}, {ID: "b", Zone: "y", Weight: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	s.zones[0].hash = s.zones[1].hash
	if hand := s.AppendHand(nil, "tenant"); hand[0].Zone != "y" {
		t.Errorf("zone %q comes first among equals, want y", hand[0].Zone)
	}
	if hand, err := s.AppendFirst(nil, "tenant", 1); err != nil || hand[0].Zone != "y" {
		t.Errorf("a hand of one is from zone %v among equals, %v; want y", hand, err)
	}
}
