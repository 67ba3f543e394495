//go:build !unix

package routerd

import "testing"

func hangUp(t *testing.T) { t.Skip("this system has no hang-up signal") }
