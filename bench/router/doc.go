// Command router measures what a request costs the router, side by side with
// proxies that other people wrote.
//
// Each proxy runs alone on one core, as a process of its own, with the same map
// of 10,000 keys, in front of the same cells. A generator on the other cores
// keeps so many connections busy, each with one request at a time (over HTTP/2,
// too), and checks every answer: its status, its length, and that the right cell
// gave it to the right tenant. What a request costs is the CPU time that the
// kernel has charged to the proxy's processes within a window, divided by the
// answers in it.
//
// Proxies take turns within each round, so that what drifts falls on all alike.
// A ratio is the median over the rounds of the ratios within a round.
//
// It runs on Linux only, whose clocks of other processes it reads.
package main
