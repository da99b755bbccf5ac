package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/api/server/overview"
)

func overviewRequest(r *http.Request) (*quorleasev1.OverviewWatchRequest, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, convert.Wrong("query", "can't be read")
	}
	request := &quorleasev1.OverviewWatchRequest{}
	return request, fromQuery(values, request)
}

// overview answers with the picture of now.
func (h *handler) overview(w http.ResponseWriter, r *http.Request) {
	request, err := overviewRequest(r)
	if err == nil {
		err = h.api.Overview(r.Context(), request, false, func(s *overview.Shown) error {
			text, err := s.Text(toJSON)
			if err == nil {
				// The text is shared: what is appended must not be.
				writeBody(w, http.StatusOK, slices.Clip(text))
			}
			return err
		})
	}
	if err != nil {
		fail(w, err)
	}
}

// overviews streams pictures as Server-Sent Events. Each is whole, so that one that
// is missed is missed by nobody; there is one a second at least, which is ping enough.
func (h *handler) overviews(w http.ResponseWriter, r *http.Request) {
	request, err := overviewRequest(r)
	if err != nil {
		fail(w, err)
		return
	}
	s := &eventStream{w: w, control: http.NewResponseController(w)}
	_ = s.control.SetReadDeadline(time.Time{})
	err = h.api.Overview(r.Context(), request, true, func(shown *overview.Shown) error {
		text, err := shown.Text(toJSON)
		if err != nil {
			return err
		}
		if !s.started {
			if err := s.begin(); err != nil {
				return err
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.writeLocked(fmt.Appendf(nil, "event: overview\ndata: %s\n\n", text))
	})
	if err != nil {
		s.fail(err)
	}
}
