// Package orders is the sample service of the demo fleet: a small shop's order
// book that a cell's workers, each a process, serve from one SQLite file.
//
// It knows nothing of other cells. It reads the tenant from the headers that a
// router sets, keys every row by it, and names its cell and worker in every
// answer so that a caller can check who served it.
//
// It also has the faults that the demo is about, on purpose: a request that
// crashes the process ([PoisonItem]), one that keeps it busy ([SlowItem]), and a
// release that fails a share of the requests ([Config.FailPercent]).
package orders
