package main

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/telemetry"
)

// A connection says where the control plane is and who asks.
type connection struct {
	URL       string `yaml:"url,omitempty" json:"url,omitempty"`
	TokenFile string `yaml:"token_file,omitempty" json:"token_file,omitempty"`
	CAFile    string `yaml:"ca_file,omitempty" json:"ca_file,omitempty"`
	CertFile  string `yaml:"cert_file,omitempty" json:"cert_file,omitempty"`
	KeyFile   string `yaml:"key_file,omitempty" json:"key_file,omitempty"`

	context string   // that the flags name
	from    string   // where the address comes from, for people
	sources []source // where the files come from
	unread  error    // why the contexts, which nobody named, were left aside
}

// A source is a file that a connection names, and what named it.
type source struct{ file, from string }

// defaultURL is where cellway up and cellway-control listen.
const defaultURL = "http://127.0.0.1:7700"

// resolve joins what flags, environment and the context say, in this order.
// Contexts that can't be read are in nobody's way who has named none of them and
// says where the control plane is.
func (a *app) resolve() (connection, error) {
	all, err := readContexts()
	name, from := a.conn.context, "--context"
	if name == "" {
		name, from = os.Getenv("CELLWAY_CONTEXT"), "CELLWAY_CONTEXT"
	}
	if err != nil && (name != "" || a.conn.URL == "" && os.Getenv("CELLWAY_URL") == "") {
		return connection{}, err
	}
	if name == "" {
		name, from = all.Current, "the current context"
	}
	kept, ok := all.Contexts[name]
	if name != "" && !ok {
		return connection{}, fmt.Errorf("%s is %q: %w; there are %s", from, name, cellway.ErrNotFound, contextsIn(all))
	}
	out := connection{URL: defaultURL, from: "the default, as neither --url nor CELLWAY_URL nor a context names one", unread: err}
	for _, one := range []struct {
		to              *string
		typed, flag     string
		variable, saved string
	}{
		{&out.URL, a.conn.URL, "--url", "CELLWAY_URL", kept.URL},
		{&out.TokenFile, a.conn.TokenFile, "--token-file", "CELLWAY_TOKEN_FILE", kept.TokenFile},
		{&out.CAFile, a.conn.CAFile, "--ca-file", "CELLWAY_CA_FILE", kept.CAFile},
		{&out.CertFile, a.conn.CertFile, "--cert-file", "CELLWAY_CERT_FILE", kept.CertFile},
		{&out.KeyFile, a.conn.KeyFile, "--key-file", "CELLWAY_KEY_FILE", kept.KeyFile},
	} {
		for _, s := range []struct{ value, from string }{
			{one.typed, one.flag}, {os.Getenv(one.variable), one.variable}, {one.saved, "context " + name},
		} {
			if s.value == "" {
				continue
			}
			if *one.to = s.value; one.to == &out.URL {
				out.from = s.from
			} else {
				out.sources = append(out.sources, source{s.value, s.from})
			}
			break
		}
	}
	return out, nil
}

// dial returns a client for the connection. What is wrong with an address or a
// file is told with what named it.
func (k connection) dial() (*client.Client, error) {
	if _, err := client.New(client.Config{URL: k.URL}); err != nil {
		if u, parseErr := url.Parse("http://" + k.URL); parseErr == nil && u.Port() != "" && !strings.Contains(k.URL, "://") {
			err = mend(err, "did you mean http://%s?", k.URL)
		}
		err = fmt.Errorf("%s: %w", k.from, err)
		if k.from == "--url" {
			return nil, boot.UsageError{Err: err}
		}
		return nil, err
	}
	cl, err := client.New(client.Config{
		URL: k.URL, TokenFile: k.TokenFile, CAFile: k.CAFile, CertFile: k.CertFile, KeyFile: k.KeyFile,
		UserAgent: "cellway/" + telemetry.ReadBuild().Version,
	})
	if err != nil {
		for _, s := range k.sources {
			if strings.Contains(err.Error(), s.file) {
				return nil, fmt.Errorf("%s: %w", s.from, err)
			}
		}
		return nil, err
	}
	return cl, nil
}
