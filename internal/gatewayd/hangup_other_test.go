//go:build !unix

package gatewayd

import "testing"

func hangUp(t *testing.T) { t.Skip("this system has no hang-up signal") }
