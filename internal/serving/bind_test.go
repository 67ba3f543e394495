package serving

import (
	"net"
	"strings"
	"testing"
)

// Who starts a second program at an address learns which flag gives it another.
func TestAnAddressThatIsTakenNamesItsFlag(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	var s Stages
	for flag, bind := range map[string]func() error{
		"admin":      func() error { _, err := s.BindAdmin(taken); return err },
		"listen":     func() error { _, err := s.Bind([]string{taken}, nil); return err },
		"listen-tls": func() error { _, err := s.Bind(nil, []string{taken}); return err },
	} {
		err := bind()
		if err == nil || !strings.HasPrefix(err.Error(), flag+": ") || !strings.HasSuffix(err.Error(), "; --"+flag+" names another address") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
