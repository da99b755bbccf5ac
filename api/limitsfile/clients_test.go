package limitsfile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/api/limitsfile/callers"
)

func TestClients(t *testing.T) {
	t.Parallel()
	file, err := limitsfile.ParseFile("limits.yaml", []byte(`limits: [{name: a, rate: {requests: 1/s}}]
clients:
  - match: {client: "nightly-*"}
    instances: 200
    delay: exponential
    jitter: 0.5%
    attempts: {job: 5, sdk: 3}
    fallback_after: 2
    honours_retry_after: false
    dedupes: true
    measures: [spend, queue_depth]
  - {match: {client: "*"}, measures: []}
`))
	if err != nil {
		t.Fatal(err)
	}
	number := func(n int64) *int64 { return &n }
	truth := func(b bool) *bool { return &b }
	want := []callers.Client{
		{
			Name: "nightly-*", Instances: number(200), Delay: callers.Exponential, Jitter: number(50),
			Attempts:      []callers.Layer{{Name: "sdk", Attempts: 3}, {Name: "job", Attempts: 5}},
			FallbackAfter: number(2), Honours: truth(false), Dedupes: truth(true),
			Measures: []string{"spend", callers.QueueDepth},
		},
		{Name: "*", Measures: []string{}},
	}
	if diff := cmp.Diff(want, file.Clients); diff != "" {
		t.Errorf("clients (-want +got):\n%s", diff)
	}
	if n := len(file.Request.GetLimits()); n != 1 {
		t.Errorf("%d limits, want 1", n)
	}
	if got := file.Clients[0].Product().Int64(); got != 15 {
		t.Errorf("product %d, want 15", got)
	}
	for field, want := range map[string][2]int{
		"clients[0].delay": {5, 5}, "clients[0].attempts.sdk": {7, 24}, "clients[1].delay": {12, 5},
		"limits[0].rate": {1, 20},
	} {
		if line, column := file.Place(field); line != want[0] || column != want[1] {
			t.Errorf("%s is at %d:%d, want %d:%d", field, line, column, want[0], want[1])
		}
	}
}

// What is wrong with callers is said like everything else, and the file is refused.
func TestClientsThatAreWrong(t *testing.T) {
	t.Parallel()
	one := func(fields string) string {
		return "limits: []\nclients:\n  - match: {client: a}\n    " + fields + "\n"
	}
	for _, m := range []mistake{
		{"no list", "limits: []\nclients: {}\n", "limits.yaml:2:10: clients: fields: want a list"},
		{"no client", "limits: []\nclients: [{delay: fixed}]\n", "clients[0].match.client: missing: a client's name"},
		{"a star inside", "limits: []\nclients: [{match: {client: \"a*b\"}}]\n", "a star may stand at the end only"},
		{
			"twice", "limits: []\nclients:\n  - match: {client: a}\n  - match: {client: a}\n",
			`limits.yaml:4:5: clients[1].match.client: "a" is used twice, first by clients[0]`,
		},
		{"unknown field", one("delays: fixed"), "limits.yaml:4:5: clients[0].delays: unknown field; known are match, "},
		{
			"unknown word", one("delay: linear"),
			`limits.yaml:4:12: clients[0].delay: "linear": want one of none, fixed, exponential`,
		},
		{"no word", one("delay: 5"), "clients[0].delay: \"5\": want a text"},
		{"nobody", one("instances: 0"), "limits.yaml:4:16: clients[0].instances: 0 is out of range 1..1000000000"},
		{"half of one", one("instances: 0.5"), "floats are not supported"},
		{"no attempt", one("attempts: {sdk: 0}"), "clients[0].attempts.sdk: 0 is out of range 1..1000"},
		{"unknown layer", one("attempts: {proxy: 2}"), "clients[0].attempts.proxy: unknown field; known are sdk, service,"},
		{"no share", one("jitter: 2s"), `clients[0].jitter: "2s": want a percentage`},
		{"no truth", one("dedupes: maybe"), `clients[0].dedupes: "maybe": want true or false`},
		{"unknown measure", one("measures: [moods]"), `clients[0].measures[0]: "moods": want one of provider_errors, `},
		{"measured twice", one("measures: [spend, spend]"), `clients[0].measures[1]: "spend" is there twice`},
	} {
		t.Run(m.name, func(t *testing.T) { m.check(t) })
	}
}
