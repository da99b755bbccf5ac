package file

import (
	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/client/names"
)

// Max is the largest file, in bytes.
const Max = 4 << 20

// endpointsMax is how many nodes may be named.
const endpointsMax = 32

// File is what a gateway is configured with. What the file does not say has its zero value,
// which whoever uses it takes for the default.
type File struct {
	// Listen is where requests come in, and Admin where health and metrics are asked for,
	// "host:port". Empty: not said, and no Admin.
	Listen, Admin string
	// Authorize is where proxies ask that forward by themselves. Empty: none does.
	Authorize string
	// Certificate and CertificateKey are names of files. Empty: HTTP without TLS.
	Certificate, CertificateKey string
	// Endpoints are nodes of the authority. Nil: not said.
	Endpoints []string
	// Client is what the gateway itself is called at the authority.
	Client string
	// Gateway lacks what is no configuration: Authority, Who, Transport, Logger.
	Gateway gateway.Config
	// Who lacks Loopback, which depends on where the gateway listens.
	Who who.Config
	// Sources say where the figures of PerMinute come from, by deployment.
	Sources map[string]Source
	// Warnings are what will not do what it seems to, each naming its field.
	Warnings []string
}

// Source is where figures come from.
type Source struct {
	// URL names it.
	URL string
	// On is the day on which somebody last looked: 2006-01-02.
	On string
}

// Secrets read what the file only names. Its functions may be called by Parse alone.
type Secrets struct {
	// ReadFile has the content of a file, by the name that the configuration has.
	ReadFile func(name string) ([]byte, error)
	// LookupEnv has the value of a variable.
	LookupEnv func(name string) (string, bool)
}

// Parse reads a file. name is what errors call it. The error is strict.Errors, of which no
// line repeats a secret.
func Parse(name string, data []byte, secrets Secrets) (*File, error) {
	r := &reader{Reader: strict.New(name), secrets: secrets}
	f := &File{}
	if root := r.Root(data, Max, ": deployments at least are needed"); root != nil {
		r.document(root, f)
	}
	if r.Err() == nil {
		r.identities(f)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	f.Warnings = append(f.Warnings, f.doubts()...)
	return f, nil
}

// reader reads one file.
type reader struct {
	*strict.Reader
	secrets Secrets
}

func (r *reader) document(root ast.Node, f *File) {
	top := r.Fields(root, "", "listen", "admin", "authorize", "tls", "endpoints", "client", "deployments", "classes",
		"clients", "identify", "tries", "retry_tokens", "body_max", "bodies_max", "bodies_client_max", "coalesce",
		"coalesced_max", "hash_key_file", "idempotency", "attempts", "circuit", "pause", "fallback", "shadow")
	f.Listen = r.text(top["listen"], "listen", addressProblem)
	f.Admin = r.text(top["admin"], "admin", addressProblem)
	if f.Admin != "" && f.Admin == f.Listen {
		r.Fail("admin", "%q is where requests come in", f.Admin)
	}
	f.Authorize = r.text(top["authorize"], "authorize", addressProblem)
	r.tls(top["tls"], f)
	f.Endpoints = r.texts(top["endpoints"], "endpoints", endpointsMax, addressProblem)
	if top["endpoints"] != nil && len(f.Endpoints) == 0 {
		r.Fail("endpoints", "none: 1 to %d", endpointsMax)
	}
	f.Client = r.text(top["client"], "client", names.ValueProblem)
	r.deployments(top["deployments"], f)
	r.classes(top["classes"], f)
	r.clients(top["clients"], f)
	r.identify(top["identify"], f)
	r.bounds(top, f)
	r.idempotency(top["idempotency"], f)
	r.attempts(top["attempts"], f)
	r.circuit(top["circuit"], f)
	r.pause(top["pause"], f)
	r.bound(top["fallback"], f)
	f.Gateway.Shadow = top["shadow"] != nil && r.Boolean(top["shadow"], "shadow")
}

func (r *reader) tls(n ast.Node, f *File) {
	if n == nil {
		return
	}
	fields := r.Fields(n, "tls", "cert_file", "key_file")
	f.Certificate = r.text(fields["cert_file"], "tls.cert_file", fileProblem)
	f.CertificateKey = r.text(fields["key_file"], "tls.key_file", fileProblem)
	for _, name := range []string{"cert_file", "key_file"} {
		if fields[name] == nil {
			r.Fail("tls."+name, "missing")
		}
	}
}
