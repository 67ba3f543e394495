package placement_test

import (
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/placement"
)

func ExampleChoose() {
	cells := []placement.Candidate{
		{ID: "cell-001", State: cellway.CellActive, Admit: 100, Region: "eu",
			Capacity: placement.Vector{"tenants": 500, "rps": 2000}, Used: placement.Vector{"tenants": 120, "rps": 1900}},
		{ID: "cell-002", State: cellway.CellActive, Admit: 100, Region: "eu",
			Capacity: placement.Vector{"tenants": 500, "rps": 2000}, Used: placement.Vector{"tenants": 300, "rps": 700}},
		{ID: "cell-003", State: cellway.CellCordoned, Admit: 100, Region: "eu"},
	}
	heavy := placement.Request{Tenant: "acme", Weights: placement.Vector{"tenants": 1, "rps": 150}, Residency: "eu", Default: "cell-001"}
	fmt.Println(placement.Choose(cells, heavy))

	heavy.Weights["rps"] = 1500
	_, err := placement.Choose(cells, heavy)
	fmt.Println(err)
	// Output:
	// cell-002 <nil>
	// tenant acme: no cell fits: cell-001 is full: rps would be 3400 of 2000; cell-002 is full: rps would be 2200 of 2000; cell-003 is cordoned: no room
}

func ExampleDecide() {
	cells := []placement.Candidate{
		{ID: "cell-001", State: cellway.CellActive, Admit: 100, Capacity: placement.Vector{"rps": 100}, Used: placement.Vector{"rps": 70}},
		{ID: "cell-002", State: cellway.CellActive, Admit: 25},
	}
	d, err := placement.Decide(cells, placement.Request{Tenant: "acme", Weights: placement.Vector{"rps": 10}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s by %s, %s %.0f %% full\n", d.Cell, d.By, d.Fullest, 100*d.Share)
	for _, no := range d.Refused {
		fmt.Println(no.Cell, no.Why)
	}
	// Output:
	// cell-001 by least_loaded, rps 80 % full
	// cell-002 is drained to 25 %
}

func ExampleAssignBuckets() {
	four := []placement.WeightedCell{{ID: "cell-001", Weight: 1}, {ID: "cell-002", Weight: 1}, {ID: "cell-003", Weight: 1}, {ID: "cell-004", Weight: 1}}
	owners, err := placement.AssignBuckets(16384, four, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	five := append(four, placement.WeightedCell{ID: "cell-005", Weight: 1})
	next, err := placement.AssignBuckets(16384, five, owners, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	moved, elsewhere := 0, 0
	for b := range next {
		if next[b] != owners[b] {
			moved++
			if next[b] != "cell-005" {
				elsewhere++
			}
		}
	}
	fmt.Printf("%d of %d buckets move to the new cell, %d elsewhere\n", moved, len(next), elsewhere)
	// Output:
	// 3276 of 16384 buckets move to the new cell, 0 elsewhere
}

func ExampleSpare() {
	cell := func(id cellway.CellID, used float64) placement.Candidate {
		return placement.Candidate{ID: id, State: cellway.CellActive, Admit: 100, Capacity: placement.Vector{"rps": 100}, Used: placement.Vector{"rps": used}}
	}
	for _, s := range placement.Spare([]placement.Candidate{cell("cell-001", 90), cell("cell-002", 70), cell("cell-003", 60)}) {
		fmt.Printf("if %s had to be emptied, %g %s would need room and %g is free\n", s.Cell, s.Needs, s.Dimension, s.Free)
	}
	// Output:
	// if cell-001 had to be emptied, 90 rps would need room and 70 is free
	// if cell-002 had to be emptied, 70 rps would need room and 50 is free
	// if cell-003 had to be emptied, 60 rps would need room and 40 is free
}
