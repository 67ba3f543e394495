package serving

import (
	"log/slog"

	"github.com/cellway/cellway/internal/telemetry"
)

// Files are the certificates and authorities that settings name.
type Files struct {
	// Watched is what is read again.
	Watched []Watched

	own         *Certificates // for clients; nil without one
	toServers   *Certificates // the program's own, for servers; nil without one
	servers     *Authorities
	certs       []*Certificates
	authorities []*Authorities
}

// Files reads what the common settings name, and notes what is wrong with it.
func (s *Settings) Files(log *slog.Logger, faults *Faults) Files {
	var f Files
	if n := len(s.TLSCerts.All); n > 0 && n == len(s.TLSKeys.All) {
		f.own = f.certificates("tls-cert", s.TLSCerts.All, s.TLSKeys.All, log, faults)
	}
	server := s.names.Server
	if s.ServerCert != "" && s.ServerKey != "" {
		f.toServers = f.certificates(server+"-cert", []string{s.ServerCert}, []string{s.ServerKey}, log, faults)
	}
	f.servers = f.Authorities(server+"-ca", s.ServerCA, log, faults)
	if s.AccessLog != "" && s.AccessLog != "-" {
		faults.Note("access-log", checkLogFile(s.AccessLog))
	}
	return f
}

func (f *Files) certificates(setting string, certs, keys []string, log *slog.Logger, faults *Faults) *Certificates {
	c, err := LoadCertificates(setting, certs, keys, log)
	faults.Note("", err)
	f.certs, f.Watched = append(f.certs, c), append(f.Watched, c)
	return c
}

// Authorities reads those of one more setting.
func (f *Files) Authorities(setting, path string, log *slog.Logger, faults *Faults) *Authorities {
	a, err := LoadAuthorities(setting, path, log)
	faults.Note("", err)
	f.authorities, f.Watched = append(f.authorities, a), append(f.Watched, a)
	return a
}

// figures shows how the certificates are, under names that begin with prefix.
func (f *Files) figures(to *telemetry.Figures, prefix string) {
	for _, c := range f.certs {
		for _, leaf := range c.Leaves() {
			to.Time(prefix+"certificate_expiry_timestamp_seconds", leaf.NotAfter, c.Setting(), leaf.Subject.CommonName)
		}
		to.Bool(prefix+"certificates_failing", c.Failing(), c.Setting())
	}
	for _, a := range f.authorities {
		if a.Named() {
			to.Bool(prefix+"certificates_failing", a.Failing(), a.Setting())
		}
	}
}
