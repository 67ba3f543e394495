package httpapi

import (
	"net/http"

	"github.com/cellway/cellway/internal/control"
)

// A route is one row of the API: its pattern, who may use it, and what answers.
type route struct {
	pattern string
	roles   []control.Role
	answer  func(*Server, *request) (*answer, error)
}

// What routers ask for, over and over.
const (
	manifestRoute = "GET /v1/map/manifest"
	reportRoute   = "POST /v1/routers/{id}"
)

// routes is the whole API. openapi.yaml says the same for clients, and a test
// holds the two together.
var routes = []route{
	{"GET /v1/fleet", keyReaders, (*Server).getFleet},
	{"PUT /v1/fleet", admins, (*Server).putFleet},

	{"GET /v1/cells", readers, (*Server).listCells},
	{"GET /v1/cells/{cell}", readers, (*Server).getCell},
	{"PUT /v1/cells/{cell}", operators, (*Server).putCell},
	{"POST /v1/cells/{cell}/drain", operators, (*Server).drain},
	{"POST /v1/cells/{cell}/undrain", operators, (*Server).undrain},
	{"POST /v1/cells/{cell}/retire", admins, (*Server).retire},
	{"GET /v1/cells/{cell}/workers", readers, (*Server).getWorkers},
	{"PUT /v1/cells/{cell}/workers", operators, (*Server).putWorkers},
	{"DELETE /v1/cells/{cell}/workers", operators, (*Server).deleteWorkers},
	{"PUT /v1/cells/{cell}/workers/{worker}", operators, (*Server).putWorker},
	{"DELETE /v1/cells/{cell}/workers/{worker}", operators, (*Server).removeWorker},
	{"POST /v1/cells/{cell}/workers/{worker}/drain", operators, (*Server).drainWorker},
	{"POST /v1/cells/{cell}/workers/{worker}/undrain", operators, (*Server).undrainWorker},
	{"GET /v1/cells/{cell}/hands", gateways, (*Server).serveWorkers},
	{"POST /v1/buckets/assign", admins, (*Server).assignBuckets},

	{"GET /v1/tenants", readers, (*Server).listTenants},
	{"POST /v1/tenants", operators, (*Server).createTenant},
	{"GET /v1/tenants/{tenant}", readers, (*Server).getTenant},
	{"PUT /v1/tenants/{tenant}", operators, (*Server).putTenant},
	{"DELETE /v1/tenants/{tenant}", operators, (*Server).deleteTenant},
	{"POST /v1/tenants/{tenant}/undelete", operators, (*Server).undeleteTenant},

	{"GET /v1/overrides", readers, (*Server).listOverrides},
	{"GET /v1/overrides/{tenant}", readers, (*Server).getOverride},
	{"PUT /v1/overrides/{tenant}", operators, (*Server).putOverride},
	{"DELETE /v1/overrides/{tenant}", operators, (*Server).removeOverride},
	{"GET /v1/overrides/{tenant}/{part}", readers, (*Server).getOverride},
	{"PUT /v1/overrides/{tenant}/{part}", operators, (*Server).putOverride},
	{"DELETE /v1/overrides/{tenant}/{part}", operators, (*Server).removeOverride},

	{"GET /v1/aliases", readers, (*Server).listAliases},
	{"GET /v1/aliases/{name}", readers, (*Server).getAlias},
	{"PUT /v1/aliases/{name}", operators, (*Server).putAlias},
	{"DELETE /v1/aliases/{name}", operators, (*Server).removeAlias},

	{"GET /v1/map", mapReaders, (*Server).mapStatus},
	{manifestRoute, mapReaders, (*Server).manifest},
	{"GET /v1/map/parts/{digest}", mapReaders, (*Server).part},
	{"GET /v1/map/versions", readers, (*Server).listVersions},
	{"GET /v1/map/versions/{version}", mapReaders, (*Server).archive},
	{"GET /v1/map/content", readers, (*Server).content},
	{"GET /v1/map/diff", readers, (*Server).diff},
	{"POST /v1/map/rollback", admins, (*Server).rollback},

	{"GET /v1/explain", keyReaders, (*Server).explain},
	{"GET /v1/locate", keyReaders, (*Server).locate},

	{"GET /v1/routers", readers, (*Server).listRouters},
	{"GET /v1/routers/{id}", readers, (*Server).getRouter},
	{reportRoute, routers, (*Server).report},
	{"DELETE /v1/routers/{id}", operators, (*Server).forgetRouter},

	{"GET /v1/changes/{id}", readers, (*Server).getChange},
	{"GET /v1/journal", readers, (*Server).listJournal},
	{"GET /v1/alarms", readers, (*Server).listAlarms},

	{"GET /v1/tokens", admins, (*Server).listTokens},
	{"POST /v1/tokens", admins, (*Server).createToken},
	{"DELETE /v1/tokens/{id}", admins, (*Server).deleteToken},
	{"GET /v1/backup", admins, (*Server).backup},
	{"POST /v1/restore/confirm", admins, (*Server).confirmRestore},

	{"GET /{$}", everybody, (*Server).index},
	{"GET /metrics", readers, (*Server).metricsPage},
	{"GET /livez", everybody, (*Server).livez},
	{"GET /readyz", everybody, (*Server).readyz},
	{"GET /v1/openapi.yaml", everybody, (*Server).openapi},
}

// mux joins the routes.
func (s *Server) mux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle(r.pattern, s.serve(r))
	}
	return mux
}
