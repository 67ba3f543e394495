package registrytest_test

import (
	"testing"

	"github.com/cellway/cellway/shuffle"
	"github.com/cellway/cellway/shuffle/registrytest"
)

func TestMemory(t *testing.T) {
	registrytest.Run(t, registrytest.Maker{
		Open:  func(*testing.T) shuffle.RegistryStore { return new(shuffle.MemRegistry) },
		Again: func(_ *testing.T, s shuffle.RegistryStore) shuffle.RegistryStore { return s },
	})
}
