package controld

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/cellway/cellway/internal/boot"
	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is also the programs that tests need as processes of their own, each
// by its name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"cellway-control": func() {
			ctx, stop := boot.WithSignals(context.Background())
			status := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
			stop()
			os.Exit(status)
		},
		"signer": func() { os.Exit(sign(os.Args[1])) },
		"writer": func() {
			if err := writeForever(os.Args[1]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		},
	})
}

var signerKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// signerCommand is a program that signs as openssl would.
func signerCommand(mode string) []string { return []string{"signer", mode} }

// sign is what that program does.
func sign(mode string) (status int) {
	message, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 3
	}
	switch mode {
	case "good":
		os.Stdout.Write(ed25519.Sign(signerKey, message))
	case "short":
		os.Stdout.Write([]byte("x"))
	case "fails":
		fmt.Fprintln(os.Stderr, "the module is locked")
		return 1
	}
	return 0
}
