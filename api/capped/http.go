package capped

import (
	"net"
	"net/http"
)

// States bounds the connections that a server has open at once, as Crowd does, for its
// ConnState. One has spoken when the headers of its first request are there, which is when
// it becomes active.
func States(most int) func(net.Conn, http.ConnState) {
	crowd := NewCrowd(most)
	return func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if out := crowd.Enter(c); out != nil {
				_ = out.Close()
			}
		case http.StateActive:
			crowd.Spoke(c)
		case http.StateClosed, http.StateHijacked:
			crowd.Leave(c)
		default:
		}
	}
}
