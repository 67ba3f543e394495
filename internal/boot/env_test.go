package boot

import (
	"errors"
	"flag"
	"strings"
	"testing"
)

func TestAVariableThatIsNoSettingIsToldAndKubernetesOwnAreNot(t *testing.T) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.String("listen", "", "")
	fs.String("publish-dir", "", "")
	for pair, want := range map[string]string{
		"X_LISTEN=a":                       "",
		"X_PUBLISH_DIR=a":                  "",
		"XY_LISTN=a":                       "",
		"PATH=a":                           "",
		"X_SERVICE_HOST=10.0.0.1":          "",
		"X_SERVICE_PORT_HTTPS=1":           "",
		"X_PORT=tcp://10.0.0.1:1":          "",
		"X_PORT_7700_TCP_ADDR=10.0.0.1":    "",
		"X_ADMIN_PORT_7701_TCP=tcp://a:1":  "",
		"X_ADMIN_SERVICE_HOST=10.0.0.1":    "",
		"X_LISTN=a":                        "environment: X_LISTN is not a setting; did you mean X_LISTEN?",
		"X_SOMETHING_ELSE_ENTIRELY_ODD=ab": "environment: X_SOMETHING_ELSE_ENTIRELY_ODD is not a setting",
	} {
		err := UnknownEnv(fs, "X", []string{"A=b", pair})
		if (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), want) || !errors.As(err, new(UsageError))) {
			t.Errorf("%s: %v, want %q", pair, err, want)
		}
	}
}
