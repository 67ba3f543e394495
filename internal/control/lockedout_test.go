package control_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

func TestMachineThatIsNotLetInRaisesAnAlarmWhileItTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 1)
		call := control.RefusedCall{From: netip.MustParseAddr("::ffff:10.0.0.7"), Why: "no token"}
		s.NoteRefused(call)
		s.NoteRefused(call)
		if a := alarm(s, control.AlarmLockedOut); a != nil {
			t.Errorf("alarm %+v after two calls", a)
		}
		begin := time.Now()
		for range 5 {
			time.Sleep(15 * time.Second)
			call.Router = "eu-1"
			s.NoteRefused(call)
			call.Router, call.Why = "a name\nof two lines", "no token for "+strings.Repeat("é", 1<<16)
			s.NoteRefused(call)
		}
		a := alarm(s, control.AlarmLockedOut)
		if a == nil || a.Subject != "address/10.0.0.7" || !a.Since.Equal(begin) ||
			!strings.Contains(a.Message, "12 calls of a router that calls itself eu-1") || !strings.Contains(a.Message, "no token") || len(a.Message) > 500 {
			t.Fatalf("alarm %+v", a)
		}
		if st := s.Stats(); st.LockedOut != 1 || st.RefusedCalls != 12 {
			t.Errorf("stats %+v", st)
		}
		time.Sleep(time.Minute)
		if a := alarm(s, control.AlarmLockedOut); a != nil || s.Stats().LockedOut != 0 {
			t.Errorf("alarm %+v a minute after the last call", a)
		}
	})
}

func TestStrangersFromManyAddressesHideNoRouterAndFillNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 1)
		begin := time.Now()
		locked := func(from string, times int) {
			for range times {
				s.NoteRefused(control.RefusedCall{From: netip.MustParseAddr(from), Why: "no token"})
			}
		}
		locked("10.0.0.7", 5)
		time.Sleep(time.Second)
		for i := range 5000 {
			locked(fmt.Sprintf("2001:db8:0:%x::1", i), 1)
		}
		time.Sleep(time.Second)
		for i := range 300 {
			locked(fmt.Sprintf("192.0.2.%d", i%100), 1)
		}
		alarms, first := 0, false
		for _, a := range s.Alarms() {
			if a.Code == control.AlarmLockedOut {
				alarms++
				first = first || a.Subject == "address/10.0.0.7" && a.Since.Equal(begin)
			}
		}
		if alarms != 17 || !first {
			t.Errorf("%d alarms, want 16 and one for the rest; of the router: %t", alarms, first)
		}
		if st := s.Stats(); st.LockedOut != 101 || st.RefusedCalls != 5305 {
			t.Errorf("%d addresses, %d calls", st.LockedOut, st.RefusedCalls)
		}
	})
}

// Whoever has one address of a network of IPv6 has all, and is one stranger.
func TestAWholeNetworkIsOneStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 1)
		refuse := func(from string) {
			s.NoteRefused(control.RefusedCall{From: netip.MustParseAddr(from), Why: "no token"})
		}
		// A router calls three times; a stranger, ever so often in between.
		for i := range 3 {
			refuse("10.0.0.7")
			for j := range 1000 {
				refuse(fmt.Sprintf("2001:db8::%x:%x%%eth0", i, j))
			}
			time.Sleep(10 * time.Second)
		}
		var told []string
		for _, a := range s.Alarms() {
			if a.Code == control.AlarmLockedOut {
				told = append(told, a.Subject)
			}
		}
		if got := strings.Join(told, " "); got != "address/10.0.0.7 address/2001:db8::/64" || s.Stats().LockedOut != 2 {
			t.Errorf("alarms about %q, %d locked out", got, s.Stats().LockedOut)
		}
	})
}
