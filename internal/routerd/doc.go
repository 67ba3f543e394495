// Package routerd is the program of a router.
//
// It is what cellway-router runs, and what other commands run that need a
// router in their process. [Main] is the command line; [Run] is the same with
// an error instead of an exit code.
//
// # Starting
//
// Settings, keyring, certificates and state folder are read, and whatever is
// wrong with them ends the start. The listeners are bound. Then the sources are
// asked, and the last known good map is used if they don't answer: meanwhile
// connections wait, for a moment, rather than being told that there is no map.
//
// # Stopping
//
// What was started is stopped in the opposite order, each step within one
// deadline: readiness fails; after a pause for load balancers the public
// listeners close and long-lived connections are told to go; requests under way
// end; the sources are left; the last state is written; the admin listener
// closes. A second signal ends the process at once, and no map is blamed for it.
package routerd
