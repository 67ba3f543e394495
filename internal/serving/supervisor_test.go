package serving

import (
	"testing"
	"time"
)

func TestSupervisorsEnvironment(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	for _, tt := range []struct {
		env  map[string]string
		want Supervisor
	}{
		{nil, Supervisor{}},
		{map[string]string{"WATCHDOG_USEC": "1000000"}, Supervisor{}},
		{map[string]string{"NOTIFY_SOCKET": "/s"}, Supervisor{socket: "/s"}},
		{map[string]string{"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "1000000"}, Supervisor{"/s", time.Second}},
		{map[string]string{"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}, Supervisor{socket: "/s"}},
		{map[string]string{"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "soon"}, Supervisor{socket: "/s"}},
	} {
		if got := supervisorFrom(env(tt.env)); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.env, got, tt.want)
		}
	}
	if err := (Supervisor{socket: "/no/such/socket"}).Tell("READY=1"); err == nil {
		t.Error("telling nobody is no error")
	}
}
