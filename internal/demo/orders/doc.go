// Package orders is the sample service of the demo fleet: a small shop's order
// book that one cell runs as one process, over a SQLite file of its own.
//
// It knows nothing of other cells. It reads the tenant from the headers that a
// router sets, keys every row by it, and names its cell in every answer so
// that a caller can check who served it.
//
// It also has the faults that the demo is about, on purpose: a request that
// crashes the process ([PoisonItem]), and a release that fails a share of the
// requests ([Config.FailPercent]).
package orders
