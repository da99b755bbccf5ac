package file

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

// hosts are where the providers are; what begins with a dot or a hyphen is the end of a name.
var hosts = []struct{ host, provider string }{
	{"api.openai.com", provider.NameOpenAI},
	{"api.anthropic.com", provider.NameAnthropic},
	{".openai.azure.com", provider.NameAzure},
	{".cognitiveservices.azure.com", provider.NameAzure},
	{"generativelanguage.googleapis.com", provider.NameGemini},
	{"aiplatform.googleapis.com", provider.NameVertex},
	{"-aiplatform.googleapis.com", provider.NameVertex},
}

// Guess is the name of the provider that answers at a host, and provider.NameCompatible for
// one that is not known: many speak as OpenAI does.
func Guess(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, known := range hosts {
		if host == known.host || strings.ContainsRune(".-", rune(known.host[0])) && strings.HasSuffix(host, known.host) {
			return known.provider
		}
	}
	if strings.HasPrefix(host, "bedrock-runtime") && strings.HasSuffix(host, ".amazonaws.com") {
		return provider.NameBedrock
	}
	return provider.NameCompatible
}

// Zero is the configuration of a gateway without a file: one deployment, named like its
// provider. Where that is empty it is guessed. Clients send the provider's key themselves. The error
// begins with the parameter that is wrong.
func Zero(upstream, providerName string) (*File, error) {
	u, problem := parseUpstream(upstream)
	if problem != "" {
		return nil, fmt.Errorf("upstream: %s", problem)
	}
	if providerName == "" {
		providerName = Guess(u.Hostname())
	}
	table, err := provider.Named(providerName)
	if err != nil {
		return nil, err
	}
	f := &File{Gateway: gateway.Config{
		Deployments: []gateway.Deployment{{Name: table.Name, Provider: table, Upstream: u}},
	}}
	f.Warnings = f.doubts()
	return f, nil
}

// doubts are what is allowed and is hardly meant.
func (f *File) doubts() (doubts []string) {
	doubt := func(format string, args ...any) { doubts = append(doubts, fmt.Sprintf(format, args...)) }
	for i := range f.Gateway.Deployments {
		d := &f.Gateway.Deployments[i]
		at := fmt.Sprintf("deployments[%d] %q", i, d.Name)
		if strings.HasSuffix(strings.TrimSuffix(d.Upstream.Path, "/"), "/v1") {
			doubt("%s: upstream ends in /v1: whoever asks for /v1/chat/completions is sent to /v1/v1/chat/completions", at)
		}
		if len(f.Who.Clients) > 0 && d.Key == "" && d.Provider.Name != provider.NameCompatible {
			doubt("%s: has no key, and the keys of clients are not passed on: the provider will refuse", at)
		}
		if d.Key != "" && d.Upstream.Scheme == "http" && !isLocal(d.Upstream) {
			doubt("%s: sends its key to %s without TLS", at, d.Upstream.Host)
		}
	}
	waits := map[string]bool{}
	for i := range f.Gateway.Classes {
		waits[f.Gateway.Classes[i].Name] = true
	}
	for i := range f.Who.Clients {
		for _, class := range f.Who.Clients[i].Classes {
			if len(waits) > 0 && !waits[class] {
				doubt("clients[%d] %q: the class %q is not among classes: it waits like the first of them, %q",
					i, f.Who.Clients[i].Name, class, f.Gateway.Classes[0].Name)
			}
		}
	}
	return doubts
}

func isLocal(u *url.URL) bool {
	host := u.Hostname()
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

// StaleAfter is for how long a look at a provider is good.
const StaleAfter = 180 * 24 * time.Hour

// Stale says what was looked up too long ago (S3-48): the table of each provider that is
// used, and the figures of the file. now is the time of day.
func (f *File) Stale(now time.Time) (stale []string) {
	told := map[string]bool{}
	for i := range f.Gateway.Deployments {
		d := &f.Gateway.Deployments[i]
		if seen, age := d.Provider.Oldest(now); age > StaleAfter && !told[d.Provider.Name] {
			told[d.Provider.Name] = true
			stale = append(stale, fmt.Sprintf("what is known of %s was last compared with %s on %s, %d days ago",
				d.Provider.Name, seen.Where, seen.On, days(age)))
		}
		source, there := f.Sources[d.Name]
		on, err := time.Parse(time.DateOnly, source.On)
		if age := now.Sub(on); there && err == nil && age > StaleAfter {
			stale = append(stale, fmt.Sprintf("deployments[%d] %q: its figures were looked up on %s, %d days ago",
				i, d.Name, source.On, days(age)))
		}
	}
	return stale
}

func days(age time.Duration) int { return int(age / (24 * time.Hour)) }
