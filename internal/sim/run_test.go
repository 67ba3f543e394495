package sim

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestProgressRisesToTheEnd(t *testing.T) {
	var parts []float64
	run := Run{Cores: 3, Progress: func(p float64) { parts = append(parts, p) }}
	if _, err := Shuffle(t.Context(), ShuffleConfig{Workers: 20, Hand: 3, Tenants: 10_000, Overlap: -1}, run); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(parts); i++ {
		if parts[i] <= parts[i-1] {
			t.Fatalf("progress goes from %v to %v", parts[i-1], parts[i])
		}
	}
	if len(parts) < 5 || parts[len(parts)-1] != 1 {
		t.Errorf("progress %v, want several up to 1", parts)
	}
}

func TestASimulationCanBeStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	run := Run{Progress: func(float64) { cancel() }}
	if _, err := Shuffle(ctx, ShuffleConfig{Workers: 20, Hand: 3, Tenants: 100_000, Overlap: -1}, run); !errors.Is(err, context.Canceled) {
		t.Errorf("Shuffle: %v, want that it was cancelled", err)
	}
	if _, err := Hands(ctx, HandsConfig{Workers: 20, Hand: 3, Tenants: 100_000}, Run{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Hands: %v, want that it was cancelled", err)
	}
}

func TestNamesArePadded(t *testing.T) {
	for _, i := range []int{0, 7, 42, 999, 1000, 9999, 10_000, 99_999, 100_000, 1_234_567} {
		if got, want := name("tenant", i), fmt.Sprintf("tenant-%05d", i); got != want {
			t.Errorf("tenant %d is %q, want %q", i, got, want)
		}
	}
}
