package guard

import (
	"net/http"
)

// misdirected says that the request is not for this cell.
func (g *guard) misdirected(w http.ResponseWriter, r *http.Request, v *Verdict) {
	status, body := v.Answer(w.Header().Set)
	g.write(w, r, status, v.Refused, body)
}

func (g *guard) refuse(w http.ResponseWriter, r *http.Request, status int, why Reason, detail string) {
	g.write(w, r, status, why, problem(w.Header().Set, status, why, detail))
}

func (g *guard) write(w http.ResponseWriter, r *http.Request, status int, why Reason, body []byte) {
	if g.judge.cfg.Refused != nil {
		g.judge.cfg.Refused(r, why)
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(body) // the client may be gone: nobody else would want to know
	}
}
