// Package sim computes how far failures reach before they happen.
//
// It asks neither a clock nor the machine: the same configuration gives the
// same report, on however many cores it runs. Where there is an exact number it
// stands beside the simulated one.
//
// [Shuffle] is about hands inside one cell: what tenants share, among a pair
// and among all. [Hands] is about change: what one worker more or one less does
// to the hands that tenants have. [Fleet] is about a whole map: who is down, for
// how long, when a cell, a tenant, a release, a dependency, the map, or the
// callers' retries fail.
//
// Reports are data. What people read of them, as tables or as a page with
// plots, are their sections: see [Section] and [WritePage].
package sim
