package controld

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/cellway/cellway"
)

// An execSigner has another program sign, such as one that asks a hardware
// module. The program reads the message on standard input and writes the 64
// bytes of an Ed25519 signature to standard output.
type execSigner struct {
	command []string
	key     ed25519.PublicKey
}

// signWithin bounds one signature.
const signWithin = 10 * time.Second

func newExecSigner(command []string, key string) (*execSigner, error) {
	pub, err := parsePublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("signer-key: %w", err)
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return nil, fmt.Errorf("signer %s: %w: %w", command[0], cellway.ErrInvalid, err)
	}
	return &execSigner{command, pub}, nil
}

// Public implements [routemap.Signer].
func (s *execSigner) Public() ed25519.PublicKey { return s.key }

// Sign implements [routemap.Signer].
func (s *execSigner) Sign(message []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), signWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	var complaint bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(message), &complaint
	cmd.WaitDelay = time.Second
	sig, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("no signature within %v", signWithin)
		}
		return nil, fmt.Errorf("%s: %w: %.200s", s.command[0], err, strings.TrimSpace(complaint.String()))
	}
	if len(sig) != ed25519.SignatureSize {
		return nil, fmt.Errorf("%s wrote %d bytes, a signature has %d", s.command[0], len(sig), ed25519.SignatureSize)
	}
	return sig, nil
}
