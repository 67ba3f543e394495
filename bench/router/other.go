//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "router: this benchmark reads other processes' clocks, which it can on Linux only")
	os.Exit(1)
}
