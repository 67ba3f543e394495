package cellway_test

import (
	"errors"
	"testing"

	"github.com/cellway/cellway"
)

func TestEndpointIsSchemeHostAndPort(t *testing.T) {
	for _, good := range []string{"http://10.0.0.1:8080", "https://cell-001.example.com:443", "http://[::1]:65535", "http://x:1"} {
		if _, err := cellway.ParseEndpoint(good); err != nil {
			t.Errorf("ParseEndpoint(%q): %v", good, err)
		}
	}
	for _, bad := range []string{"", "http://x", "x:80", "ftp://x:80", "http://x:0", "http://x:65536", "http://x:70000", "http://x:-1", "http://x:80/",
		"http://x:80?q", "http://x:80#", "http://u@x:80", "http://:80"} {
		if _, err := cellway.ParseEndpoint(bad); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("ParseEndpoint(%q): %v, want ErrInvalid", bad, err)
		}
	}
}

func TestEndpointsOfOnePlaceHaveOneAddress(t *testing.T) {
	for want, all := range map[string][]string{
		"cell-001.example.com:443": {"https://cell-001.example.com:443", "http://Cell-001.EXAMPLE.com.:0443"},
		"10.0.0.1:8080":            {"http://10.0.0.1:8080", "https://10.0.0.1:08080", "http://[::ffff:10.0.0.1]:8080"},
		"[2001:db8::1]:80":         {"http://[2001:db8::1]:80", "http://[2001:DB8:0:0::1]:80"},
		"":                         {"", "10.0.0.1:8080", "http://10.0.0.1"},
	} {
		for _, endpoint := range all {
			if got := cellway.EndpointAddress(endpoint); got != want {
				t.Errorf("EndpointAddress(%q) = %q, want %q", endpoint, got, want)
			}
		}
	}
}
