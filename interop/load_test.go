package interop

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// run runs a program for at most a minute and returns what it says.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// number returns the number that expression finds in text.
func number(t *testing.T, text, expression string) int {
	t.Helper()
	m := regexp.MustCompile(expression).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in:\n%s", expression, text)
	}
	n, err := strconv.Atoi(m[1])
	must(t, err)
	return n
}

// wrk keeps its connections busy over HTTP/1.1 and gets no error.
func TestWrk(t *testing.T) {
	wrk := tool(t, "wrk")
	cell := serve(t, noMux(newWeb()))
	r := newRig(t, newAuthority(t), []cellSpec{{"web", "http://" + cell}})
	for _, url := range []string{"http://" + r.plain, "https://" + r.tls} {
		for _, path := range []string{"/echo", "/bytes"} {
			t.Run(url[:5]+path, func(t *testing.T) {
				out := run(t, wrk, "-t2", "-c64", "-d2s", "-H", "X-Tenant-Id: web", url+path)
				if strings.Contains(out, "Non-2xx") || strings.Contains(out, "Socket errors") {
					t.Errorf("errors:\n%s", out)
				}
				if n := number(t, out, `(\d+) requests in`); n < 100 {
					t.Errorf("only %d requests:\n%s", n, out)
				} else {
					t.Logf("%d requests in 2 s", n)
				}
			})
		}
	}
}

// h2load sends many requests at once over few connections and gets no error.
func TestH2load(t *testing.T) {
	h2load := tool(t, "h2load")
	cell := serve(t, noMux(newWeb()))
	r := newRig(t, newAuthority(t), []cellSpec{{"web", "http://" + cell}})
	for name, args := range map[string][]string{
		"h2":          {"https://" + r.tls + "/echo"},
		"h2c":         {"http://" + r.plain + "/echo"},
		"h1 over tls": {"--h1", "https://" + r.tls + "/echo"},
		"h2 uploads":  {"-d", "web_test.go", "https://" + r.tls + "/echo"},
		"h2 large":    {"-n", "200", "https://" + r.tls + "/bytes"},
		"h2 few":      {"-w", "16", "-W", "16", "https://" + r.tls + "/bytes", "-n", "200"}, // small windows
	} {
		t.Run(name, func(t *testing.T) {
			want := 4000
			for i, a := range args {
				if a == "-n" {
					want, _ = strconv.Atoi(args[i+1])
				}
			}
			out := run(t, h2load, append([]string{"-n", fmt.Sprint(want), "-c", "8", "-m", "16", "-H", "x-tenant-id: web"}, args...)...)
			requests := fmt.Sprintf("requests: %d total, %d started, %d done, %d succeeded, 0 failed, 0 errored, 0 timeout", want, want, want, want)
			codes := fmt.Sprintf("status codes: %d 2xx, 0 3xx, 0 4xx, 0 5xx", want)
			if !strings.Contains(out, requests) || !strings.Contains(out, codes) {
				t.Errorf("not %q or not %q:\n%s", requests, codes, out)
			}
		})
	}
}
