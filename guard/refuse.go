package guard

import (
	"encoding/json"
	"net/http"

	"github.com/cellway/cellway"
)

// misdirected says that the request is not for this cell and did not run. The
// epoch makes it a guard's refusal, which no application can have meant.
func (g *guard) misdirected(w http.ResponseWriter, r *http.Request, why Reason, detail string) {
	var epoch cellway.Epoch
	if v := r.Header[EpochHeader]; len(v) == 1 {
		if e, err := cellway.ParseEpoch(v[0]); err == nil {
			epoch = e
		}
	}
	w.Header().Set(EpochHeader, epoch.String())
	w.Header().Set(CellHeader, string(g.cfg.Cell))
	g.refuse(w, r, http.StatusMisdirectedRequest, why, detail)
}

func (g *guard) refuse(w http.ResponseWriter, r *http.Request, status int, why Reason, detail string) {
	if g.cfg.Refused != nil {
		g.cfg.Refused(r, why)
	}
	body, err := json.Marshal(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Code   Reason `json:"code"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, why, detail})
	if err != nil {
		body = []byte("{}") // strings and a number always marshal
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(body) // the client may be gone: nobody else would want to know
	}
}
