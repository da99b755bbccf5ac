package httpapi_test

import (
	"os"
	"strings"
	"testing"

	"github.com/quorlease/quorlease/api/httpapi"
)

// Every row of the reference is served, and what is served has a row.
func TestReferenceIsTrue(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/http.md")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, nil)
	rows := map[string]bool{}
	for _, line := range strings.Split(string(page), "\n") {
		method, rest, found := strings.Cut(strings.TrimPrefix(line, "| `"), " /")
		if !found || !strings.HasPrefix(line, "| `") {
			continue
		}
		path, _, _ := strings.Cut("/"+rest, "`")
		rows[method+" "+path] = true
		switch path {
		case "/v1/events":
			path += "?follow=false"
		case "/v1/overview:watch":
			// A mistake: the stream has no end.
			path += "?top=101"
		}
		code, _, body := s.do(request{method: method, path: strings.ReplaceAll(path, "{name}", "x")})
		if strings.Contains(body, "UNKNOWN_PATH") || strings.Contains(body, "METHOD_NOT_ALLOWED") {
			t.Errorf("%s %s is not served: %d %s", method, path, code, body)
		}
	}
	for _, route := range httpapi.Routes() {
		if !rows[route] {
			t.Errorf("%s is not in the reference", route)
		}
	}
}
