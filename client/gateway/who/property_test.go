package who

import (
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/client/names"
)

// drawClients are clients that may speak for one another by chance. Each has the key
// "key-" and its name.
func drawClients(t *rapid.T) []Client {
	tenants := []string{"red", "blue", "green"}
	all := make([]Client, rapid.IntRange(1, 6).Draw(t, "clients"))
	for i := range all {
		name := fmt.Sprintf("c%d", i)
		all[i] = Client{
			Name: name, Tenant: rapid.SampledFrom(tenants).Draw(t, "tenant"), Keys: []string{HashKey("key-" + name)},
			Classes: [][]string{nil, {"live"}, {"batch", "live"}}[rapid.IntRange(0, 2).Draw(t, "classes")],
		}
	}
	for i := range all {
		for j := range all {
			if rapid.IntRange(0, 3).Draw(t, "may") == 0 {
				all[i].May = append(all[i].May, all[j].Name)
			}
			if rapid.IntRange(0, 5).Draw(t, "tenants") == 0 {
				all[i].Tenants = append(all[i].Tenants, all[j].Tenant)
			}
		}
		all[i].Any = all[i].Tenant == "red" && rapid.Bool().Draw(t, "any")
	}
	return all
}

// expected is the client as which a key asks with a name, and its tenant; written down
// apart from the Book.
func expected(all []Client, speaker *Client, name string) (client, tenant string, may bool) {
	if name == "" {
		return speaker.Name, speaker.Tenant, true
	}
	for i := range all {
		if c := &all[i]; c.Name == name {
			may := c == speaker || slices.Contains(speaker.May, name) || slices.Contains(speaker.Tenants, c.Tenant)
			return c.Name, c.Tenant, may
		}
	}
	return name, speaker.Tenant, speaker.Any && name != Unidentified && names.ValueProblem(name) == ""
}

// dress gives a request headers that are no credential, and an address.
func dress(t *rapid.T, r *http.Request) {
	word := rapid.SampledFrom([]string{"c0", "c1", "c5", "red", "blue", "127.0.0.1", "live", Unidentified, "key-c0"})
	for range rapid.IntRange(0, 6).Draw(t, "headers") {
		header := rapid.SampledFrom([]string{
			"X-Forwarded-For", "Forwarded", "X-Real-Ip", "X-Tenant-Id", "X-User-Id", "Client", "Cookie", "From",
			"Proxy-Authorization", "X_client_id", "X-Client-Ids", "Authorization-Info",
		}).Draw(t, "header")
		r.Header.Add(header, word.Draw(t, "value"))
	}
	r.RemoteAddr = rapid.SampledFrom([]string{"127.0.0.1:1", "[::1]:1", "192.0.2.1:1", ""}).Draw(t, "peer")
	r.Host = rapid.SampledFrom([]string{"localhost", "gateway.example", ""}).Draw(t, "host")
}

// TestAKeyDecides: with one key, whatever else a request says, it is a client for which
// that key speaks, or nobody.
func TestAKeyDecides(t *testing.T) {
	t.Run("S1-26_whatever_else_is_said", rapid.MakeCheck(func(t *rapid.T) {
		all := drawClients(t)
		b, err := New(Config{Clients: all, Unidentified: rapid.SampledFrom([]Mode{Warn, Enforce}).Draw(t, "mode")})
		if err != nil {
			t.Fatal(err)
		}
		speaker := &all[rapid.IntRange(0, len(all)-1).Draw(t, "speaker")]
		name := rapid.SampledFrom([]string{"", "c0", "c1", "c2", "c3", "x", Unidentified, "\x00"}).Draw(t, "name")
		r := ask("Authorization", "Bearer key-"+speaker.Name)
		if name != "" {
			r.Header.Set("X-Client-Id", name)
		}
		dress(t, r)
		client, tenant, may := expected(all, speaker, name)
		id, no := b.Identify(r)
		switch {
		case may != (no == nil):
			t.Fatalf("%v: refused %+v, want passed: %v", r.Header, no, may)
		case may && (id.Client != client || id.Tenant != tenant || !id.Keyed):
			t.Fatalf("%v: %+v, want %s of %s", r.Header, id, client, tenant)
		case may && (id.Speaker != "") != (client != speaker.Name):
			t.Fatalf("%v: %+v by %s", r.Header, id, speaker.Name)
		case !may && no.Reason.Status()/100 != 4:
			t.Fatalf("%v: refused with %d", r.Header, no.Reason.Status())
		}
	}))
	t.Run("S1-44_without_a_key_nobody_is_anybody", rapid.MakeCheck(func(t *rapid.T) {
		all := drawClients(t)
		mode := rapid.SampledFrom([]Mode{Shadow, Warn, Enforce}).Draw(t, "mode")
		b, err := New(Config{Clients: all, Unidentified: mode})
		if err != nil {
			t.Fatal(err)
		}
		r := ask("X-Client-Id", rapid.SampledFrom([]string{"", "c0", "c1", "x"}).Draw(t, "name"))
		if rapid.Bool().Draw(t, "wrong key") {
			r.Header.Set("X-Api-Key", "key-c9")
		}
		dress(t, r)
		if id, no := b.Identify(r); mode == Enforce && no == nil || mode != Enforce && id.Client != Unidentified {
			t.Fatalf("%v: %+v, refused %+v", r.Header, id, no)
		}
	}))
}

// FuzzIdentify wants whatever a request says (a name, a class and a tenant; three keys; its
// peer and host) to be a client that there is, or a bounded name that a key may invent, or
// nobody.
func FuzzIdentify(f *testing.F) {
	f.Add("web\nlive\nshop", "Bearer web-key", "127.0.0.1:1\nlocalhost")
	f.Add("till", "\nedge-key", "[::1]:1\n[::1]:8")
	f.Add("me\nbatch\nus", "\n\nweb-key", "1.2.3.4:1\npage.example")
	f.Add("\xff\n\x00\nunidentified", "Bearer\nedge-key\nedge-key", "\n]:[")
	strict, lenient := book(f, Config{}), book(f, Config{Unidentified: Warn, Unnamed: Warn, Unmarked: Warn})
	local := book(f, Config{Loopback: true})
	keys := map[string]bool{}
	for _, key := range []string{"web-key", "jobs-old", "jobs-new", "desk-key", "edge-key", "hub-key"} {
		keys[key] = true
	}
	f.Fuzz(func(t *testing.T, said, secrets, where string) {
		name, class, tenant := three(said)
		bearer, key, azure := three(secrets)
		r := ask("X-Client-Id", name, ClassHeader, class, TenantHeader, tenant,
			"Authorization", bearer, "X-Api-Key", key, "Api-Key", azure)
		r.RemoteAddr, r.Host, _ = three(where)
		keyed := keys[strings.TrimPrefix(bearer, "Bearer ")] && strings.HasPrefix(bearer, "Bearer ") ||
			keys[key] || keys[azure]
		for _, b := range []*Book{strict, lenient, local} {
			id, no := b.Identify(r)
			bounded(t, id)
			if no != nil {
				if id.Client != "" || no.Reason.Status()/100 != 4 || len(no.Detail) > 256 || len(id.Found) == 0 {
					t.Errorf("%v: %+v, refused %+v", r.Header, id, no)
				}
				continue
			}
			_, configured := b.byName[id.Client]
			switch {
			case b == local && (id.Keyed || id.Client != textproto.TrimString(name)):
				t.Errorf("%v: %+v on loopback", r.Header, id)
			case b == strict && !id.Keyed:
				t.Errorf("%v: %+v without a key", r.Header, id)
			case b == lenient && keyed && !id.Keyed:
				t.Errorf("%v: %+v, and there is a key", r.Header, id)
			case b != local && !configured && id.Speaker != "edge" && id.Client != Unidentified:
				t.Errorf("%v: %+v is nobody", r.Header, id)
			}
		}
	})
}

// three are the lines of a text, as far as there are three.
func three(text string) (first, second, third string) {
	first, text, _ = strings.Cut(text, "\n")
	second, third, _ = strings.Cut(text, "\n")
	return first, second, third
}

func bounded(t *testing.T, id Identity) {
	t.Helper()
	for _, text := range []string{id.Client, id.Tenant, id.Class, id.Speaker} {
		if len(text) > names.ClientMax || !utf8.ValidString(text) || text != "" && names.ValueProblem(text) != "" {
			t.Errorf("%q", text)
		}
	}
	if id.Class != "" && names.DimensionProblem(id.Class) != "" {
		t.Errorf("class %q", id.Class)
	}
	if len(id.Found) > 2 || len(id.Warnings) > len(id.Found) {
		t.Errorf("found %q, warnings %q", id.Found, id.Warnings)
	}
	for _, text := range id.Warnings {
		if len(text) > 256 {
			t.Errorf("warning %q", text)
		}
	}
}
