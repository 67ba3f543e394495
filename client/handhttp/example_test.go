package handhttp_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/cellway/cellway/client/handhttp"
	"github.com/cellway/cellway/shuffle"
)

// A program of a cell calls the cell's workers. One of them answers nothing but
// errors, and nobody notices.
func Example() {
	urls := map[string]string{}
	var ids []string
	for i := range 6 {
		id := fmt.Sprint("worker-", i)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if id == "worker-3" {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			fmt.Fprint(w, "hello, ", r.Header.Get("X-Tenant-Id"))
		}))
		defer s.Close()
		urls[id] = s.URL
		ids = append(ids, id)
	}
	snapshot, err := shuffle.NewSnapshot(shuffle.Config{Salt: "cell-001", Size: 3, Workers: shuffle.Even(ids...)})
	if err != nil {
		log.Fatal(err)
	}
	hands, err := handhttp.NewDealt(snapshot, urls)
	if err != nil {
		log.Fatal(err)
	}
	rt, err := handhttp.New(handhttp.Config{Hands: hands})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.CloseIdleConnections()

	c := &http.Client{Transport: rt}
	failed, greeting := 0, ""
	for range 100 {
		req, err := http.NewRequest(http.MethodGet, "http://cell-001/hello", nil)
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("X-Tenant-Id", "acme")
		resp, err := c.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			failed++
		}
		greeting = string(b)
	}
	fmt.Println(greeting)
	fmt.Println(failed, "of 100 failed")
	// Output:
	// hello, acme
	// 0 of 100 failed
}

// A program that must not know how hands are dealt receives them.
func ExampleReceived() {
	rt, err := handhttp.New(handhttp.Config{Hands: &handhttp.Received{
		Of:      "2026-01-02.7",
		Tenants: map[string][]handhttp.Member{"acme": {{ID: "worker-1", URL: "http://127.0.0.1:1"}, {ID: "worker-4", URL: "http://127.0.0.1:1"}}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, "http://cell-001/orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("X-Tenant-Id", "acme")
	_, err = rt.RoundTrip(req)
	if e, ok := errors.AsType[*handhttp.Error](err); ok {
		fmt.Println(len(e.Attempts), "members were tried:", e.Stop)
	}
	// Output: 2 members were tried: all attempts are used up
}
