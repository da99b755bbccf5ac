package forwarding

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/file"
	"github.com/quorlease/quorlease/client/gateway/who"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// reload reads the files again, and puts all of each in force or nothing. Where one has a mistake
// neither counts.
func (r *running) reload(ctx context.Context, o *Options) {
	if o.config == "" {
		r.reloadLimits(ctx)
		return
	}
	changes, err := r.renew(ctx, o)
	if err != nil {
		r.logger.Error("the file is not taken, and what it said before goes on", "err", err)
		return
	}
	for _, warning := range append(o.file.Warnings, o.file.Stale(time.Now())...) {
		r.logger.Warn(warning)
	}
	if len(changes) == 0 {
		changes = []string{"nothing"}
	}
	r.logger.Info("read the file again", "changed", strings.Join(changes, "; "))
	r.reloadLimits(ctx)
}

// renew is reload with what has changed. Certificates are always read again.
func (r *running) renew(ctx context.Context, o *Options) ([]string, error) {
	next := *o
	if err := next.Complete(ctx); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read the file again: %w", err)
	}
	if keys := fixed(o.file, next.file); len(keys) > 0 {
		return nil, fmt.Errorf("%s: can't change while it runs: start it anew", strings.Join(keys, ", "))
	}
	book, err := who.New(next.file.Who)
	if err != nil {
		return nil, err
	}
	certificate, err := next.certificate()
	if err != nil {
		return nil, err
	}
	config := next.file.Gateway
	config.Who = book
	if err := r.gateway.Reload(config); err != nil {
		return nil, err
	}
	r.book.Store(book)
	r.identity.Store(certificate)
	changes := changed(o.file, next.file)
	o.file = next.file
	return changes, nil
}

// fixed are the fields that differ and can't while a gateway runs: what they configure is open,
// or has remembered things by them.
func fixed(before, after *file.File) (keys []string) {
	b, a := &before.Gateway, &after.Gateway
	for _, row := range []struct {
		key  string
		same bool
	}{
		{"listen", before.Listen == after.Listen},
		{"admin", before.Admin == after.Admin},
		{"authorize", before.Authorize == after.Authorize},
		{"tls", (before.Certificate == "") == (after.Certificate == "")},
		// A file that lost its clients, half written, would let in whoever names itself.
		{"clients (from none or to none)", (len(before.Who.Clients) == 0) == (len(after.Who.Clients) == 0)},
		{"endpoints", slices.Equal(before.Endpoints, after.Endpoints)},
		{"client", before.Client == after.Client},
		{"coalesced_max", b.Shared.Bytes == a.Shared.Bytes},
		{"hash_key_file", bytes.Equal(b.Hashes.Key, a.Hashes.Key)},
		{"attempts.volatile", slices.Equal(b.Hashes.Volatile, a.Hashes.Volatile)},
		{"attempts", reflect.DeepEqual(b.Attempts, a.Attempts)},
		{"circuit", reflect.DeepEqual(b.Circuits, a.Circuits)},
		{"circuit.shared", b.Told.Circuits == a.Told.Circuits && b.Told.Deployments == a.Told.Deployments &&
			b.Probes == a.Probes},
	} {
		if !row.same {
			keys = append(keys, row.key)
		}
	}
	return keys
}

// changed says what differs, by name: a key is none.
func changed(before, after *file.File) (changes []string) {
	b, a := &before.Gateway, &after.Gateway
	add := func(key, text string) {
		if text != "" {
			changes = append(changes, key+text)
		}
	}
	add("deployments", differing(b.Deployments, a.Deployments, func(d gateway.Deployment) string { return d.Name }))
	add("classes", differing(b.Classes, a.Classes, func(c gateway.Class) string { return c.Name }))
	add("clients", differing(before.Who.Clients, after.Who.Clients, func(c who.Client) string { return c.Name }))
	// What stands in identify is all of it but the clients.
	was, is := before.Who, after.Who
	was.Clients, is.Clients, was.Markers, is.Markers = nil, nil, nil, nil
	for _, row := range []struct {
		key     string
		was, is any
	}{
		{"identify", was, is},
		{"tries", b.Tries, a.Tries},
		{"retry_tokens", b.RetryTokens, a.RetryTokens},
		{"pause", b.Pauses, a.Pauses},
		{"fallback", b.Fallback, a.Fallback},
		{"body_max", b.BodyMax, a.BodyMax},
		{"bodies_max", b.BodiesMax, a.BodiesMax},
		{"bodies_client_max", b.BodiesClientMax, a.BodiesClientMax},
		{"coalesce", b.NoSharing, a.NoSharing},
		{"idempotency", b.Replays, a.Replays},
		{"shadow", b.Shadow, a.Shadow},
		{"attempts.markers", b.Markers, a.Markers},
	} {
		if !reflect.DeepEqual(row.was, row.is) {
			changes = append(changes, row.key)
		}
	}
	return changes
}

// changesShown is how many names of one kind are logged.
const changesShown = 10

// differing are the names of what is new, gone or different, in the order of the file: " +new
// ~different -gone". Where nothing but the order differs it says that.
func differing[T any](before, after []T, name func(T) string) string {
	was, is := map[string]T{}, map[string]bool{}
	for _, one := range before {
		was[name(one)] = one
	}
	var all []string
	for _, one := range after {
		is[name(one)] = true
		switch old, known := was[name(one)]; {
		case !known:
			all = append(all, "+"+exit.Printable(name(one)))
		case !reflect.DeepEqual(old, one):
			all = append(all, "~"+exit.Printable(name(one)))
		}
	}
	for _, one := range before {
		if !is[name(one)] {
			all = append(all, "-"+exit.Printable(name(one)))
		}
	}
	same := func(a, b T) bool { return name(a) == name(b) }
	switch more := len(all) - changesShown; {
	case len(all) == 0 && slices.EqualFunc(before, after, same):
		return ""
	case len(all) == 0:
		return " in another order"
	case more > 0:
		all = append(all[:changesShown], fmt.Sprintf("and %d more", more))
	}
	return " " + strings.Join(all, " ")
}

// certificate reads the files of TLS. Nil: there are none.
func (o *Options) certificate() (*tls.Certificate, error) {
	if o.file.Certificate == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	certificate, err := tls.LoadX509KeyPair(o.file.Certificate, o.file.CertificateKey)
	if err != nil {
		return nil, exit.Usagef("tls: %w", err)
	}
	return &certificate, nil
}

// secured adds TLS to a listener, where there is a certificate.
func (r *running) secured(l net.Listener) net.Listener {
	if r.identity.Load() == nil {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if certificate := r.identity.Load(); certificate != nil {
				return certificate, nil
			}
			return nil, errors.New("no certificate")
		},
	})
}
