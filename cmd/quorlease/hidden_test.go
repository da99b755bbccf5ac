package main

import (
	"strings"
	"testing"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// A key that turns the rest of the line around is escaped for people, and left
// as it is for programs.
func TestHiddenCharactersAreShown(t *testing.T) {
	t.Parallel()
	const key, escaped = "a\u202eb", `a\u202eb`
	fake := fullFake()
	fake.acquire = deniedAnswer()
	for _, d := range fake.acquire.GetDenials() {
		d.Key = key
	}
	fake.clients = &quorleasev1.ClientsListResponse{Clients: []*quorleasev1.ClientStatus{{Client: key}}}
	node := startFake(t, fake)
	for _, args := range [][]string{{"acquire", "demo"}, {"clients"}} {
		for format, want := range map[string]string{"text": escaped, "json": key} {
			got := command(t, append(args, "--endpoints", node.addr, "-o", format)...)
			if !strings.Contains(got.stdout, want) || format == "text" && strings.Contains(got.stdout, key) {
				t.Errorf("%v as %s: %q, want %q in it; stderr %q", args, format, got.stdout, want, got.stderr)
			}
		}
	}
}
