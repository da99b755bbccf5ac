package upstream

import (
	"encoding/json"
	"net/http"
)

// keep remembers an answer by its key, where there is room and keys are honoured.
func (c *call) keep(body json.RawMessage) {
	s := c.s
	if !s.config.HonourKeys || c.key == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.answered) < s.config.LedgerMax {
		s.mu.answered[c.key] = body
	}
}

// replay answers with what was answered to the key before. It is false where that is nothing.
func (c *call) replay() bool {
	s := c.s
	s.mu.Lock()
	body, there := s.mu.answered[c.key]
	s.mu.Unlock()
	if !there {
		return false
	}
	c.record.Outcome, c.record.Status = Replayed, http.StatusOK
	c.w.Header().Set("Idempotent-Replayed", "true")
	c.json(http.StatusOK, body)
	return true
}
