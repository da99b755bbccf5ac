package httpapi

import (
	"net/http"

	"github.com/quorlease/quorlease/api/dashboard"
)

// pages are the files of the page. They say nothing of the cluster, but who may
// not see what the page shows has no use for them, and gets an error that says so.
func (h *handler) pages() map[string]methods {
	table := make(map[string]methods)
	for _, file := range dashboard.Files() {
		serve := func(w http.ResponseWriter, r *http.Request) {
			if err := h.api.Allow(r.Context(), "/quorlease.v1.Overview/Watch"); err != nil {
				fail(w, err)
				return
			}
			file.ServeHTTP(w, r)
		}
		table[file.Path] = methods{http.MethodGet: serve, http.MethodHead: serve}
	}
	return table
}
