//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "faults: this benchmark reads what other processes hold, which it can on Linux only")
	os.Exit(1)
}
