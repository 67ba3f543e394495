package engine

import "github.com/cellway/cellway/internal/plaintext"

// A foreign error is one of package net/http about an answer that can't be read. What
// that quotes has come from the cell, and may be a cookie or a piece of a body: it is
// left out of the text.
type foreign struct{ error }

func (e foreign) Unwrap() error { return e.error }

func (e foreign) Error() string { return plaintext.Unquoted(e.error.Error()) }
