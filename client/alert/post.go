package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// urlLenMax bounds a URL, in bytes.
const urlLenMax = 2048

// parseURL checks where alerts are to be sent. Its errors show the URL without
// what may be secret in it: credentials, query and fragment.
func parseURL(raw string) (*url.URL, error) {
	refuse := func(reason string) error { return fmt.Errorf("URL %q: %s", withoutSecrets(raw), reason) }
	if raw == "" {
		return nil, refuse("empty, want http://host:port/path")
	}
	if len(raw) > urlLenMax {
		return nil, fmt.Errorf("URL of %d bytes, at most %d", len(raw), urlLenMax)
	}
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's own error quotes all of it.
		return nil, refuse("not a URL, want http://host:port/path")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, refuse(fmt.Sprintf("the scheme %q is neither http nor https", u.Scheme))
	case u.Hostname() == "":
		return nil, refuse("no host, want http://host:port/path")
	case u.Fragment != "":
		return nil, refuse("a fragment is not sent, leave it out")
	}
	return u, nil
}

// withoutSecrets is a URL as it may be shown. It works on what is no URL too.
func withoutSecrets(raw string) string {
	raw = raw[:min(len(raw), urlLenMax)]
	for _, secret := range []string{"?", "#"} {
		if before, _, found := strings.Cut(raw, secret); found {
			raw = before + secret + "…"
		}
	}
	start := 0
	if scheme := strings.Index(raw, "//"); scheme >= 0 {
		start = scheme + len("//")
	}
	if at := strings.LastIndex(raw, "@"); at >= start {
		raw = raw[:start] + "…" + raw[at:]
	}
	return raw
}

// poster posts JSON to one place.
type poster struct {
	// what and host name the place in errors. The path is left out: with many
	// services it is the secret.
	what, host string
	url        string
	client     *http.Client
}

func newPoster(what string, u *url.URL) poster {
	return poster{
		what: what, host: u.Scheme + "://" + u.Host, url: u.String(),
		client: &http.Client{
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment,
				// Alerts are rare: an idle connection would be gone when it is needed.
				DisableKeepAlives: true, ForceAttemptHTTP2: true,
			},
			// A redirect could take credentials and alerts to somebody else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// String names the place without its secrets.
func (p poster) String() string { return p.what + " " + p.host }

// answerMax is how much of an answer is read, in bytes.
const answerMax = 4096

// post sends one document. Any answer of 200 to 299 is success.
func (p poster) post(ctx context.Context, document any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("%s: encode alert: %w", p, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", p, withoutURL(err))
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "quorlease")
	response, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", p, withoutURL(err))
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerMax))
	if response.StatusCode/100 == 2 {
		return nil
	}
	text := strings.TrimSpace(string(answer))
	if err != nil || text == "" {
		return fmt.Errorf("%s: answered %s", p, response.Status)
	}
	const shown = 200
	return fmt.Errorf("%s: answered %s: %q", p, response.Status, text[:min(len(text), shown)])
}

// withoutURL drops the part of an HTTP error that repeats the URL.
func withoutURL(err error) error {
	var around *url.Error
	if errors.As(err, &around) {
		return around.Err
	}
	return err
}
