// Package serving is what programs that stand in front of requests have around
// their engine.
//
// [Program.Run] reads their [Settings] from flags, environment and file, and does what
// these ask for. A [Daemon] is opened and run around a
// router or a gateway; its [Stages] start its parts and stop them in the opposite
// order. A [Gate] bounds their clients' connections; [Certificates] and [Authorities]
// are read again when their files change; [Admin] answers people and their tools, an
// [AccessLog] tells them of requests, and a [Supervisor] hears that all is well.
package serving
