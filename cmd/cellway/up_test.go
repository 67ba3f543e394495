package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
)

func TestUpConfirmsWhatItWasToldAndNothingElse(t *testing.T) {
	gate := &client.Error{Problem: api.Problem{Code: api.CodeGate, Digest: "d1", Status: 409}}
	for name, tt := range map[string]struct {
		answers []error
		want    []string
		err     error
	}{
		"a write that passes":     {[]error{nil}, []string{""}, nil},
		"a write that is asked":   {[]error{gate, nil}, []string{"", "d1"}, nil},
		"a write that is refused": {[]error{cellway.ErrConflict}, []string{""}, cellway.ErrConflict},
		"asked about another":     {[]error{gate, gate}, []string{"", "d1"}, cellway.ErrGate},
	} {
		var got []string
		err := confirmed(func(w client.Write) error {
			got = append(got, w.Confirm)
			return tt.answers[len(got)-1]
		})
		if !slices.Equal(got, tt.want) || !errors.Is(err, tt.err) {
			t.Errorf("%s: confirms %q, %v", name, got, err)
		}
	}
}
