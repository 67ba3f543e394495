// Command faults measures what real faults do to the cells that are well, behind
// a router.
//
// The router is built and runs as a process of its own, in front of four cells
// that are processes, too. Requests for three of them come at a fixed rate,
// whatever becomes of those before them, and some for the fourth. One fault at a
// time is played: by the fourth cell, which hangs, drips, resets, floods and the
// like; or by clients, of which there are ten thousand that say nothing, or some
// that don't read; or by the machine, which has no descriptors left.
//
// Each fault has a window between two windows without it. So there are two
// ratios: that of the window with the fault to those without, and that of the two
// without to each other, which says how far ratios of nothing are from 1 here. A
// request's time begins when it was due, not when it was sent. What the router's
// process holds, in memory and descriptors, is read before, during and after.
//
// In the same rounds the same faults are played with nginx in front, if it is here:
// what they cost there, they cost the machine.
//
// Last, so many clients' connections are opened and left idle, and what each
// costs the router's process in memory is told, by both servers of HTTP/1, in
// cleartext and over TLS.
//
// It runs on Linux only, whose /proc it reads.
package main
