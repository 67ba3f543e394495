package engine

import (
	"net/http"
	"testing"
	"time"
)

func TestTimeoutsOfCalls(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1H": time.Hour, "2M": 2 * time.Minute, "3S": 3 * time.Second, "00000004m": 4 * time.Millisecond, "5u": 5 * time.Microsecond, "6n": 6, "0S": 0,
		"99999999M": endless(-1), "99999999H": endless(-1),
		"": -1, "S": -1, "1": -1, "1s": -1, "+1S": -1, "-1S": -1, "1.5S": -1, "123456789S": -1, " 1S": -1, "1 S": -1,
	} {
		got, ok := callTimeout(http.Header{"Grpc-Timeout": {text}})
		if ok != (want >= 0) || ok && got > want || ok && got < want-time.Hour {
			t.Errorf("%q: %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, h := range []http.Header{{}, {"Grpc-Timeout": {"1S", "2S"}}} {
		if got, ok := callTimeout(h); ok {
			t.Errorf("%v: %v", h, got)
		}
	}
}

func FuzzCallTimeout(f *testing.F) {
	f.Add("99999999H")
	f.Fuzz(func(t *testing.T, text string) {
		if d, ok := callTimeout(http.Header{"Grpc-Timeout": {text}}); d < 0 || !ok && d != 0 {
			t.Errorf("%q: %v", text, d)
		}
	})
}
