package front

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"
)

// entryOf is an entry with all kinds of fields.
func entryOf(e Entry, now time.Time, text string, n int64, d time.Duration, client netip.Addr, yes bool) Entry {
	return e.Begin(now).Time("at", now.Add(-d)).Text("text", text).TextIfAny("more", text).Int("n", n).
		Milliseconds("ms", d).AddrIfAny("client", client).TrueIf("yes", yes).End()
}

// An entry is what package slog would have written.
func TestEntryIsAsSlogWritesIt(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 1, 234567890, time.FixedZone("", 5400))
	var out bytes.Buffer
	log := slog.NewJSONHandler(&out, nil)
	r := slog.NewRecord(now, slog.LevelInfo, "request", 0)
	const d = 1234567 * time.Nanosecond
	r.Add("at", now.Add(-d), "text", "a\"b\\\n\t\x01é\u2028", "more", "a\"b\\\n\t\x01é\u2028", "n", -7, "ms", 1.234, "client", "2001:db8::1", "yes", true)
	if err := log.Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	got := entryOf(nil, now, "a\"b\\\n\t\x01é\u2028", -7, d, netip.MustParseAddr("2001:db8::1"), true)
	if string(got) != out.String() {
		t.Errorf("got  %swant %s", got, out.String())
	}
}

func TestEntryLeavesOutWhatIsNot(t *testing.T) {
	now := time.Now()
	got := string(entryOf(nil, now, "", 0, 0, netip.Addr{}, false))
	if !strings.HasSuffix(got, `,"text":"","n":0,"ms":0}`+"\n") {
		t.Errorf("got %s", got)
	}
}

func TestEntryHasMillisecondsToTheMicrosecond(t *testing.T) {
	for us, want := range map[int64]string{0: "0", 1: "0.001", 10: "0.01", 100: "0.1", 1000: "1", 1234: "1.234", 1230: "1.23", 1200: "1.2", 1002: "1.002", -1500: "-1.5", -1: "-0.001", 3_600_000_000: "3600000"} {
		d := time.Duration(us) * time.Microsecond
		if d > 0 {
			d += 999 // what is below a microsecond is left out
		}
		got, ok := strings.CutPrefix(string(Entry(nil).Milliseconds("ms", d)), `,"ms":`)
		if !ok || got != want {
			t.Errorf("%d us: %s, want %s", us, got, want)
		}
	}
	if got := string(Entry(nil).Milliseconds("ms", math.MinInt64)); got != `,"ms":-9223372036854.775` {
		t.Errorf("the least is %s", got)
	}
}

// Whatever the client sends, an entry is one line of JSON that says the same.
func FuzzEntry(f *testing.F) {
	f.Add("plain", int64(5), int64(1500), []byte{192, 0, 2, 1})
	f.Add("a\"b\\\x00\x1f\x7f\xff\xc3\x28é\u2028\u2029\U0001f600", int64(-1), int64(-1), []byte{})
	f.Add("a\u0085b\u009bc\u00a0", int64(1), int64(1), []byte{})
	f.Add(strings.Repeat("é", 300), int64(0), int64(1), bytes.Repeat([]byte{1}, 16))
	f.Fuzz(func(t *testing.T, text string, n, d int64, ip []byte) {
		client, _ := netip.AddrFromSlice(ip)
		if len(text) > 3 && client.Is6() {
			client = client.WithZone(text)
		}
		now := time.Unix(1700000000, n&0xffff)
		b := entryOf(Entry("what was there"), now, text, n, time.Duration(d), client, n > 0)
		if !utf8.Valid(b) || bytes.IndexByte(b, '\n') != len(b)-1 {
			t.Fatalf("%q is not a line of UTF-8", b)
		}
		for _, c := range string(b[:len(b)-1]) {
			if c < ' ' || c >= 0x7f && c <= 0x9f || c == '\u2028' || c == '\u2029' {
				t.Fatalf("%q has a control", b)
			}
		}
		var got struct {
			Time, At               time.Time
			Level, Msg, Text, More string
			N                      int64
			MS                     float64
			Client                 string
			Yes                    bool
		}
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		start := text[:min(len(text), maxLogged)]
		want, _ := json.Marshal(start)
		var said string
		if err := json.Unmarshal(want, &said); err != nil {
			t.Fatal(err)
		}
		if got.Text != said || got.More != said || got.N != n || got.Yes != (n > 0) || got.Level != "INFO" || got.Msg != "request" || !got.Time.Equal(now) {
			t.Fatalf("%q says %+v", b, got)
		}
		if ms := float64(time.Duration(d).Microseconds()) / 1000; got.MS != ms {
			t.Fatalf("%v ms, want %v", got.MS, ms)
		}
		if client.IsValid() == (got.Client == "") {
			t.Fatalf("client %v is %q", client, got.Client)
		}
	})
}

func TestEntryAllocatesNothingInMemoryThatIsThere(t *testing.T) {
	e, now, client := make(Entry, 0, 1024), time.Now(), netip.MustParseAddr("192.0.2.1")
	if n := testing.AllocsPerRun(100, func() { e = entryOf(e, now, "/orders/1234", 5, time.Second, client, true) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMemoryOfAHugeEntryIsNotKept(t *testing.T) {
	if b := Kept(make([]byte, 500)); b == nil || len(b) != 0 {
		t.Errorf("that of a usual one is %d bytes", cap(b))
	}
	if b := Kept(make([]byte, 20<<10)); b != nil {
		t.Errorf("%d bytes are kept", cap(b))
	}
}

func TestAShareOfWhatWentWellIsLogged(t *testing.T) {
	for share, want := range map[float64][2]int{-1: {0, 0}, 0: {1000, 1000}, 0.25: {150, 350}, 1: {1000, 1000}} {
		well := 0
		for range 1000 {
			if Logged(true, share) {
				well++
			}
			if !Logged(false, share) {
				t.Fatalf("share %v leaves out what went wrong", share)
			}
		}
		if well < want[0] || well > want[1] {
			t.Errorf("share %v: %d of 1000, want %v", share, well, want)
		}
	}
}

func TestClipCopiesTheStart(t *testing.T) {
	for _, s := range []string{"", "/orders", strings.Repeat("a", 60<<10)} {
		got := Clip(s)
		if got != s[:min(len(s), maxLogged)] {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
		if s != "" && unsafe.StringData(got) == unsafe.StringData(s) {
			t.Error("it points into what it is a copy of")
		}
	}
}

func BenchmarkEntry(b *testing.B) {
	e, now, client := make(Entry, 0, 1024), time.Now(), netip.MustParseAddr("192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		e = entryOf(e, now, "/orders/1234", 5, 1234567, client, true)
	}
}
