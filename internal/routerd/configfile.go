package routerd

import (
	"flag"
	"io"

	"github.com/cellway/cellway/internal/boot"
)

// configFile reads "name value" lines for fs.
func configFile(fs *flag.FlagSet) func(r io.Reader, set func(name, value string) error) error {
	return boot.ConfigFile(fs)
}
