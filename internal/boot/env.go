package boot

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
)

// serviceEnv matches the ends of what Kubernetes puts into the environment of every
// container for a service whose name begins as the program's does.
var serviceEnv = regexp.MustCompile(`^([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// UnknownEnv reports a variable of environ that looks like a setting of fs, as it
// begins with that prefix and _, and is none: a slip that would otherwise go
// unnoticed. The error is a [UsageError].
func UnknownEnv(fs *flag.FlagSet, prefix string, environ []string) error {
	known := map[string]bool{}
	var names []string
	fs.VisitAll(func(f *flag.Flag) {
		name := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		known[name] = true
		names = append(names, name)
	})
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if end, ok := strings.CutPrefix(name, prefix+"_"); ok && !known[end] && !serviceEnv.MatchString(end) {
			return UsageError{fmt.Errorf("environment: %s is not a setting%s", name, Meant(end, names, prefix+"_"))}
		}
	}
	return nil
}
