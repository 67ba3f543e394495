package gateway_test

import (
	"fmt"

	"github.com/cellway/cellway/gateway"
)

func ExampleParseWorkers() {
	w, err := gateway.ParseWorkers([]byte(`{"size": 1, "workers": [
		{"id": "w1", "zone": "a", "endpoint": "http://127.0.0.1:9101"},
		{"id": "w2", "zone": "b", "endpoint": "http://127.0.0.1:9102", "weight": 0}
	]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Endpoint("w1"))
	// Output: http://127.0.0.1:9101
}
