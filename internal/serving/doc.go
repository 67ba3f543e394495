// Package serving is what programs that stand in front of requests have around
// their engine.
//
// [Program.Parse] reads their settings from flags, environment and file, and
// [Program.Start] does what these ask for. [Stages] start their parts and stop
// them in the opposite order. A [Gate] bounds their
// clients' connections; [Certificates] and [Authorities] are read again when
// their files change; [Admin] answers people and their tools, an [AccessLog]
// tells them of requests, and a [Supervisor] hears that all is well.
package serving
