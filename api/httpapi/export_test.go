package httpapi

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Routes is what is served, as "GET /path".
func Routes() (list []string) {
	h := &handler{}
	for path, ways := range h.table(prometheus.NewRegistry()) {
		if path == limitPath {
			path += "{name}"
		}
		for method := range ways {
			if method != http.MethodHead {
				list = append(list, method+" "+path)
			}
		}
	}
	slices.Sort(list)
	return list
}
