package who

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// longest is the longest key that is looked at.
var longest = strings.Repeat("k", keyMax)

// Some clients: two of one tenant, one of another, and two gateways that speak for some.
func clients() []Client {
	return []Client{
		{Name: "web", Tenant: "shop", Classes: []string{"live", "batch"}, Keys: []string{HashKey("web-key")}},
		{Name: "jobs", Tenant: "shop", Classes: []string{"batch"}, Keys: []string{
			HashKey("jobs-old"), strings.ToUpper(HashKey("jobs-new")),
		}},
		{Name: "desk", Tenant: "bank", Keys: []string{HashKey("desk-key")}},
		{Name: "vault", Tenant: "bank", Classes: []string{"live"}},
		{
			Name: "edge", Tenant: "shop", Classes: []string{"live", "edge"}, May: []string{"web"}, Any: true,
			Keys: []string{HashKey("edge-key"), HashKey(longest), HashKey(longest + "x")},
		},
		{Name: "hub", Tenant: "net", Tenants: []string{"bank"}, Keys: []string{HashKey("hub-key")}},
	}
}

func book(t testing.TB, config Config) *Book {
	t.Helper()
	if config.Clients == nil && !config.Loopback {
		config.Clients = clients()
	}
	b, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ask is a request with some headers. It comes from elsewhere.
func ask(pairs ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://gateway.example/v1/chat/completions", http.NoBody)
	for i := 0; i < len(pairs); i += 2 {
		r.Header.Add(pairs[i], pairs[i+1])
	}
	return r
}

// row is a request and what is made of it: an identity, as client, tenant and class with
// slashes between, or the rule that refuses it.
type row struct {
	name    string
	request *http.Request
	want    string
	rule    Rule
}

func (row row) check(t *testing.T, b *Book) {
	t.Helper()
	id, no := b.Identify(row.request)
	got := strings.Join([]string{id.Client, id.Tenant, id.Class}, "/")
	if row.rule == "" {
		if no != nil || got != row.want {
			t.Errorf("%v: %s, refused %+v, want %s", row.request.Header, got, no, row.want)
		}
		return
	}
	if no == nil || len(id.Found) == 0 || id.Found[len(id.Found)-1] != row.rule {
		t.Errorf("%v: %s, found %v, want refused for %s", row.request.Header, got, id.Found, row.rule)
		return
	}
	if got != "//" || id.Keyed || id.Speaker != "" || id.Warnings != nil {
		t.Errorf("%v: refused, and there is an identity: %+v", row.request.Header, id)
	}
	if want := rules[row.rule].reason; no.Reason != want {
		t.Errorf("%v: refused as %s, want %s", row.request.Header, no.Reason, want)
	}
}

func TestKeys(t *testing.T) {
	b := book(t, Config{})
	for _, row := range []row{
		{"S1-14_nothing_at_all", ask(), "", NoCredential},
		{"S1-14_a_key_and_nothing_else", ask("Authorization", "Bearer web-key"), "web/shop/live", ""},
		{"S1-44_a_name_without_a_key", ask("x-client-id", "web"), "", NoCredential},
		{"S1-44_an_empty_key", ask("Authorization", "Bearer ", "x-api-key", "", "x-client-id", "web"), "", NoCredential},
		{"S1-44_nobodys_key", ask("Authorization", "Bearer other", "x-client-id", "web"), "", UnknownCredential},
		{"S1-44_another_scheme", ask("Authorization", "Basic d2ViLWtleQ=="), "", NoCredential},
		{"S1-44_an_unknown_scheme", ask("Authorization", "Token web-key"), "", NoCredential},
		{"S1-44_no_scheme", ask("Authorization", "web-key"), "", NoCredential},
		{"S1-44_the_hash_is_no_key", ask("x-api-key", HashKey("web-key")), "", UnknownCredential},
		{"S1-44_a_key_of_other_case", ask("x-api-key", "Web-key"), "", UnknownCredential},
		{"the_longest_key", ask("x-api-key", longest), "edge/shop/live", ""},
		{"S1-44_a_longer_one_is_nobodys", ask("x-api-key", longest+"x"), "", UnknownCredential},
		{"as_anthropic_has_it", ask("x-api-key", "web-key"), "web/shop/live", ""},
		{"as_azure_has_it", ask("api-key", "web-key"), "web/shop/live", ""},
		{"the_scheme_in_any_case", ask("Authorization", "bEARER   web-key"), "web/shop/live", ""},
		{"the_old_key", ask("x-api-key", "jobs-old"), "jobs/shop/batch", ""},
		{"the_new_key", ask("x-api-key", "jobs-new"), "jobs/shop/batch", ""},
		{"the_same_key_twice", ask("Authorization", "Bearer web-key", "x-api-key", "web-key"), "web/shop/live", ""},
		{"both_keys", ask("Authorization", "Bearer jobs-old", "x-api-key", "jobs-new"), "jobs/shop/batch", ""},
		{"beside_the_providers", ask("x-api-key", "sk-ant-1", "Authorization", "Bearer web-key"), "web/shop/live", ""},
		{"keys_of_two", ask("Authorization", "Bearer web-key", "api-key", "jobs-new"), "", Ambiguous},
		{"a_header_twice", ask("x-api-key", "web-key", "x-api-key", "web-key"), "", Repeated},
		{"authorization_twice", ask("Authorization", "Bearer x", "Authorization", "Bearer web-key"), "", Repeated},
		{"S1-44_from_loopback", loopback("x-client-id", "web"), "", NoCredential},
	} {
		t.Run(row.name, func(t *testing.T) { row.check(t, b) })
	}
}

func TestNames(t *testing.T) {
	b := book(t, Config{})
	with := func(key string, pairs ...string) *http.Request {
		return ask(append([]string{"Authorization", "Bearer " + key}, pairs...)...)
	}
	for _, row := range []row{
		{"S1-26_its_own", with("web-key", "x-client-id", "web"), "web/shop/live", ""},
		{"S1-26_with_spaces", with("web-key", "x-client-id", " web\t"), "web/shop/live", ""},
		{"S1-26_another_of_its_tenant", with("web-key", "x-client-id", "jobs"), "", ForeignName},
		{"S1-26_another_tenants", with("web-key", "x-client-id", "desk"), "", ForeignName},
		{"S1-26_nobodys", with("web-key", "x-client-id", "stranger"), "", ForeignName},
		{"S1-26_in_other_case", with("web-key", "x-client-id", "WEB"), "", ForeignName},
		{"S1-26_two_in_one", with("web-key", "x-client-id", "web, jobs"), "", ForeignName},
		{"S1-26_that_of_the_unknown", with("web-key", "x-client-id", Unidentified), "", ForeignName},
		{"S1-26_twice", with("web-key", "x-client-id", "web", "x-client-id", "jobs"), "", Repeated},
		{"S1-26_the_same_twice", with("web-key", "x-client-id", "web", "x-client-id", "web"), "", Repeated},
		{"S1-26_too_long", with("web-key", "x-client-id", strings.Repeat("w", 257)), "", BadName},
		{"S1-26_no_text", with("web-key", "x-client-id", "web\xff"), "", BadName},
		{"S1-26_a_control_character", with("web-key", "x-client-id", "w\x00eb"), "", BadName},
		{"S1-26_forwarded", with("web-key", "x-forwarded-for", "127.0.0.1", "forwarded", "for=127.0.0.1",
			"x-real-ip", "127.0.0.1", "x-tenant-id", "bank"), "web/shop/live", ""},
		{"delegate_for_itself", with("edge-key"), "edge/shop/live", ""},
		{"delegate_for_one_on_its_list", with("edge-key", "x-client-id", "web"), "web/shop/live", ""},
		{"delegate_for_one_not_on_it", with("edge-key", "x-client-id", "jobs"), "", ForeignName},
		{"delegate_for_another_tenants", with("edge-key", "x-client-id", "desk"), "", ForeignName},
		{"delegate_for_any_other", with("edge-key", "x-client-id", "till-7"), "till-7/shop/live", ""},
		{"delegate_for_the_unknown", with("edge-key", "x-client-id", Unidentified), "", ForeignName},
		{"delegate_for_a_name_too_long", with("edge-key", "x-client-id", strings.Repeat("t", 257)), "", BadName},
		{"delegate_of_tenants", with("hub-key", "x-client-id", "desk"), "desk/bank/", ""},
		{"delegate_of_tenants_without_a_key", with("hub-key", "x-client-id", "vault"), "vault/bank/live", ""},
		{"delegate_of_other_tenants", with("hub-key", "x-client-id", "web"), "", ForeignName},
		{"delegate_of_tenants_for_others", with("hub-key", "x-client-id", "till-7"), "", ForeignName},
		{"tenant_its_own", with("web-key", "x-quorlease-tenant", "shop"), "web/shop/live", ""},
		{"tenant_another", with("web-key", "x-quorlease-tenant", "bank"), "", ForeignTenant},
		{
			"tenant_of_who_is_spoken_for", with("hub-key", "x-client-id", "desk", "x-quorlease-tenant", "bank"),
			"desk/bank/", "",
		},
		{"tenant_of_the_speaker", with("hub-key", "x-client-id", "desk", "x-quorlease-tenant", "net"), "", ForeignTenant},
		{"tenant_twice", with("web-key", "x-quorlease-tenant", "shop", "x-quorlease-tenant", "shop"), "", Repeated},
		{"class_asked_for", with("web-key", "x-quorlease-class", "batch"), "web/shop/batch", ""},
		{"class_not_its", with("jobs-new", "x-quorlease-class", "live"), "", ForeignClass},
		{"class_without_any", with("desk-key", "x-quorlease-class", "live"), "", ForeignClass},
		{
			"class_of_who_is_spoken_for", with("edge-key", "x-client-id", "web", "x-quorlease-class", "batch"),
			"web/shop/batch", "",
		},
		{
			"class_of_who_is_not_configured", with("edge-key", "x-client-id", "till-7", "x-quorlease-class", "edge"),
			"till-7/shop/edge", "",
		},
		{
			"class_not_of_who_is_not_configured",
			with("edge-key", "x-client-id", "till-7", "x-quorlease-class", "batch"), "", ForeignClass,
		},
		{"class_twice", with("web-key", "x-quorlease-class", "batch", "x-quorlease-class", "live"), "", Repeated},
	} {
		t.Run(row.name, func(t *testing.T) { row.check(t, b) })
	}
}

func TestWhoSpeaks(t *testing.T) {
	b := book(t, Config{})
	for _, test := range []struct{ key, name, speaker string }{
		{"web-key", "", ""},
		{"web-key", "web", ""},
		{"edge-key", "", ""},
		{"edge-key", "edge", ""},
		{"edge-key", "web", "edge"},
		{"edge-key", "till-7", "edge"},
		{"hub-key", "desk", "hub"},
	} {
		id, no := b.Identify(ask("api-key", test.key, "x-client-id", test.name))
		if no != nil || !id.Keyed || id.Speaker != test.speaker || id.Shares() != id.Tenant {
			t.Errorf("%s as %q: %+v, refused %+v, want keyed, and spoken for by %q", test.key, test.name, id, no, test.speaker)
		}
	}
}

// loopback is a request of a program on this machine.
func loopback(pairs ...string) *http.Request {
	r := ask(pairs...)
	r.RemoteAddr, r.Host = "127.0.0.1:40000", "localhost:8080"
	return r
}

func TestLoopback(t *testing.T) {
	b := book(t, Config{Loopback: true})
	at := func(peer, host string, pairs ...string) *http.Request {
		r := loopback(append([]string{"x-client-id", "me"}, pairs...)...)
		r.RemoteAddr, r.Host = peer, host
		return r
	}
	const peer, host = "127.0.0.1:40000", "localhost:8080"
	for _, row := range []row{
		{"S1-26_the_header_is_the_name", loopback("x-client-id", "me"), "me/me/", ""},
		{"S1-44_missing", loopback(), "", NoName},
		{"S1-44_empty", loopback("x-client-id", " "), "", NoName},
		{"S1-44_with_the_providers_key", loopback("Authorization", "Bearer sk-1"), "", NoName},
		{"S1-26_twice", loopback("x-client-id", "me", "x-client-id", "you"), "", Repeated},
		{"S1-26_too_long", loopback("x-client-id", strings.Repeat("m", 257)), "", BadName},
		{
			"S1-26_the_longest", loopback("x-client-id", strings.Repeat("m", 256)),
			strings.Repeat("m", 256) + "/" + strings.Repeat("m", 256) + "/", "",
		},
		{"S1-26_that_of_the_unknown", loopback("x-client-id", Unidentified), "", ForeignName},
		{"tenant", loopback("x-client-id", "me", "x-quorlease-tenant", "us"), "me/us/", ""},
		{"tenant_of_the_unknown", loopback("x-client-id", "me", "x-quorlease-tenant", Unidentified), "", ForeignTenant},
		{"tenant_no_text", loopback("x-client-id", "me", "x-quorlease-tenant", "u\xff"), "", BadName},
		{"tenant_twice", loopback("x-client-id", "me", "x-quorlease-tenant", "a", "x-quorlease-tenant", "b"), "", Repeated},
		{"class", loopback("x-client-id", "me", "x-quorlease-class", "batch"), "me/me/batch", ""},
		{"class_that_can_be_none", loopback("x-client-id", "me", "x-quorlease-class", "Batch!"), "", ForeignClass},
		{"ipv6", at("[::1]:40000", host), "me/me/", ""},
		{"ipv4_in_ipv6", at("[::ffff:127.0.0.1]:40000", host), "me/me/", ""},
		{"to_a_number", at(peer, "127.0.0.1:8080"), "me/me/", ""},
		{"to_a_number_of_ipv6", at(peer, "[::1]:8080"), "me/me/", ""},
		{"to_a_number_of_ipv6_without_a_port", at(peer, "[::1]"), "me/me/", ""},
		{"to_localhost_without_a_port", at(peer, "LocalHost."), "me/me/", ""},
		{"from_elsewhere", at("192.0.2.1:40000", host), "", Elsewhere},
		{"from_elsewhere_it_says_loopback", at("192.0.2.1:40000", host, "x-forwarded-for", "127.0.0.1"), "", Elsewhere},
		{"from_a_socket", at("@", host), "", Elsewhere},
		{"from_nowhere", at("", host), "", Elsewhere},
		{"for_another_name", at(peer, "page.example:8080"), "", Elsewhere},
		{"for_a_name_that_begins_alike", at(peer, "localhost.page.example"), "", Elsewhere},
		{"for_no_name", at(peer, ""), "", Elsewhere},
		{"of_another_page", at(peer, host, "Sec-Fetch-Site", "cross-site"), "", Elsewhere},
		{"of_another_origin", at(peer, host, "Origin", "https://page.example"), "", Elsewhere},
		{"of_its_own_page", at(peer, host, "Sec-Fetch-Site", "same-origin"), "me/me/", ""},
	} {
		t.Run(row.name, func(t *testing.T) { row.check(t, b) })
	}
	t.Run("no_key_is_the_gateways", func(t *testing.T) {
		id, _ := b.Identify(loopback("x-client-id", "me", "Authorization", "Bearer sk-1"))
		if id.Keyed {
			t.Errorf("%+v: keyed, want the provider's key to be left alone", id)
		}
	})
	t.Run("classes", func(t *testing.T) {
		b := book(t, Config{Loopback: true, Classes: []string{"live", "batch"}})
		row{request: loopback("x-client-id", "me"), want: "me/me/live"}.check(t, b)
		row{request: loopback("x-client-id", "me", "x-quorlease-class", "batch"), want: "me/me/batch"}.check(t, b)
		row{request: loopback("x-client-id", "me", "x-quorlease-class", "night"), rule: ForeignClass}.check(t, b)
	})
}

// TestAnswers: what is refused says so in the form of every client, without a word of what
// the request has said.
func TestAnswers(t *testing.T) {
	b := book(t, Config{Unmarked: Enforce})
	const secret = "s3cret"
	for _, test := range []struct {
		name    string
		request *http.Request
		status  int
		param   string
	}{
		{"S1-44_missing", ask(), 401, ""},
		{"S1-44_unknown", ask("x-api-key", secret), 401, ""},
		{"S1-26_another", ask("x-api-key", "web-key", "x-client-id", secret), 403, "x-client-id"},
		{"S1-26_another_that_there_is", ask("x-api-key", "web-key", "x-client-id", "desk"), 403, "x-client-id"},
		{"tenant", ask("x-api-key", "web-key", "x-quorlease-tenant", secret), 403, "x-quorlease-tenant"},
		{"class", ask("x-api-key", "web-key", "x-quorlease-class", secret), 403, "x-quorlease-class"},
		{"twice", ask("x-api-key", "web-key", "x-client-id", secret, "x-client-id", secret), 400, "x-client-id"},
		{"S1-46_no_marker", ask("x-api-key", "web-key"), 400, "x-retry-attempt"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, no := b.Identify(test.request)
			if no == nil {
				t.Fatal("not refused")
			}
			answer := no.HTTP(refuse.Asker{}, rand.Int64N)
			var problem struct {
				Status int
				Detail string
			}
			if err := json.Unmarshal(answer.Body, &problem); err != nil {
				t.Fatalf("%s: %v", answer.Body, err)
			}
			if answer.Status != test.status || problem.Status != test.status || no.Param != test.param {
				t.Errorf("%d, %+v, param %q, want %d and %q", answer.Status, problem, no.Param, test.status, test.param)
			}
			if answer.Header.Get("Content-Type") != "application/problem+json" ||
				answer.Header.Get("X-Should-Retry") != "false" || !strings.HasSuffix(problem.Detail, ".") {
				t.Errorf("%v: %s", answer.Header, answer.Body)
			}
			if text := string(answer.Body); strings.Contains(text, secret) || strings.Contains(text, "desk") {
				t.Errorf("%s repeats what the request has said", text)
			}
		})
	}
	foreign, absent := ask("x-api-key", "web-key", "x-client-id", "desk"), ask("x-api-key", "web-key", "x-client-id", "no")
	_, one := b.Identify(foreign)
	_, other := b.Identify(absent)
	if one.Detail != other.Detail || one.Reason != other.Reason {
		t.Errorf("a client that there is: %+v, and one that there is not: %+v; want the same", one, other)
	}
}

func TestHeaders(t *testing.T) {
	b := book(t, Config{Name: "x-app", Class: "X-PRIORITY", Tenant: "x_org"})
	want := []string{"X-App", "X_org", "X-Priority"}
	if got := b.Headers(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	row{
		request: ask("api-key", "edge-key", "x-app", "web", "x-priority", "batch", "x-client-id", "desk"),
		want:    "web/shop/batch",
	}.check(t, b)
	if got := Credentials(); !slices.Equal(got, []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}) {
		t.Errorf("%q", got)
	}
}

func BenchmarkIdentify(b *testing.B) {
	known := book(b, Config{Unmarked: Enforce})
	for _, test := range []struct {
		name    string
		request *http.Request
	}{
		{"known", ask("x-api-key", "web-key", "x-client-id", "web", "x-retry-attempt", "0")},
		{"unknown", ask("x-api-key", "other")},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				known.Identify(test.request)
			}
		})
	}
}
