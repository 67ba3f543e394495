// Package gatewayd is the program of a cell's gateway.
//
// It is what cellway-gateway runs, and what other commands run that need a
// gateway in their process. [Main] is the command line; [Run] is the same with
// an error instead of an exit code.
//
// # Starting
//
// Settings, certificates and limits are read, and whatever is wrong with them
// ends the start; so does a file of workers that breaks a rule, as there is no
// last good list yet. Other sources of workers may be unreachable: until one
// answers the gateway is not ready. The listeners are bound before anything
// runs.
//
// # Stopping
//
// What was started is stopped in the opposite order, each step within one
// deadline: readiness fails; after a pause for routers the public listeners
// close and long-lived connections are told to go; requests under way end; the
// source is left; the admin listener closes. A second signal ends the process at
// once.
package gatewayd
