//go:build !linux && !darwin

package sqlitestore_test

import (
	"context"
	"errors"
)

func outgrow(context.Context) error { return errors.ErrUnsupported }
