package routerd

import "testing"

// http1 is that setting of routers that tests start; empty: its default.
var http1 string

// What clients see of the program is the same if HTTP/1 is served by net/http,
// which is not the default. These tests have what the program adds to either
// server: serving, TLS, the places of connections, and stopping.
func TestHTTP1ByNetHTTP(t *testing.T) {
	http1 = "net/http"
	defer func() { http1 = "" }()
	for _, tt := range []struct {
		name string
		test func(*testing.T)
	}{
		{"follows a folder", TestRouterFollowsAFolderOfMaps},
		{"waits for the first map", TestClientsWaitForTheFirstMap},
		{"stops in order", TestStoppingInOrder},
		{"stops at the deadline", TestStoppingHasADeadline},
		{"HTTP/2 in cleartext", TestCleartextHTTP2},
		{"TLS", TestTLSListenerAndItsCertificates},
		{"cells over TLS", TestCellsOverTLS},
		{"idle connections", TestIdleConnectionsMakeRoom},
		{"a connection too many", TestAConnectionTooManyIsTurnedAway},
		{"a full cell", TestConnectionsToAFullCellAreGivenBack},
		{"a hanging cell", TestAHangingCellLeavesRoomInASmallRouter},
		{"refused heads", TestRefusedHeadsAreRequestsToo},
		{"settings for clients", TestSettingsForClientsAreKept},
		{"trusted proxies", TestTrustedProxiesAreBelieved},
	} {
		t.Run(tt.name, tt.test)
	}
}
