package serving

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// Handshakes that fail are told of, each kind once in a minute, and what merely came
// and went is not.
func TestFailedHandshakesAreToldOfWithinBounds(t *testing.T) {
	var log bytes.Buffer
	h := Handshakes{Log: slog.New(slog.NewTextHandler(&log, nil))}
	for port := range 50 {
		peer := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: port + 1}
		h.Failed(peer, errors.New("tls: client didn't provide a certificate"))
		h.Failed(peer, io.EOF)
		h.Failed(peer, fmt.Errorf("read: %w", net.ErrClosed))
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "client didn't provide a certificate") || !strings.Contains(log.String(), "peer=192.0.2.1 ") {
		t.Errorf("%d lines: %s", n, log.String())
	}
	told, now := 0, time.Now()
	for i := range 100 {
		if _, tell := h.take(now, fmt.Sprint(i)); tell {
			told++
		}
	}
	if told != mostHandshakes-1 {
		t.Errorf("%d more are told of", told)
	}
	if untold, tell := h.take(now.Add(handshakesEvery), "0"); !tell || untold != 100-mostHandshakes+1 {
		t.Errorf("a minute later: %v, %d were not told of", tell, untold)
	}
}
