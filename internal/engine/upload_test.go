package engine

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"
)

// A connection is kept after a body that the cell has got whole, however soon the
// cell answers then.
func TestUploadsKeepTheirConnection(t *testing.T) {
	r := newRig(t, nil, Config{})
	r.use(r.cell("127.0.0.1:0", func(w http.ResponseWriter, req *http.Request) {
		n, _ := io.Copy(io.Discard, req.Body)
		fmt.Fprint(w, n)
	}))
	upload := func(client *http.Client, length int) (reused bool) {
		req, err := http.NewRequest("POST", r.url("/"), bytes.NewReader(make([]byte, length)))
		if err != nil {
			t.Fatal(err)
		}
		req = req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused },
		}))
		resp, err := client.Do(req)
		if err != nil {
			t.Error(err)
			return false
		}
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != fmt.Sprint(length) {
			t.Errorf("%d bytes: the cell says %q, %v", length, b, err)
		}
		return reused
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			client := r.client(false)
			for n := range 100 {
				length := []int{64 << 10, 64<<10 + 1, 5000, 100_000}[(i+n)%4]
				if reused := upload(client, length); n > 0 && !reused {
					t.Errorf("the connection was closed before upload %d", n)
					return
				}
			}
		})
	}
	all.Wait()
}
