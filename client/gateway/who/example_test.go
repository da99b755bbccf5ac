package who_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/quorlease/quorlease/client/gateway/who"
)

// A gateway further out asks for one of the clients behind it.
func ExampleBook_Identify() {
	book, err := who.New(who.Config{Clients: []who.Client{
		{Name: "edge", Tenant: "shop", May: []string{"web"}, Keys: []string{who.HashKey("its key")}},
		{Name: "web", Tenant: "shop", Classes: []string{"live", "batch"}},
		{Name: "desk", Tenant: "bank", Keys: []string{who.HashKey("another key")}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"web", "desk"} {
		r := httptest.NewRequest("POST", "/v1/chat/completions", nil)
		r.Header.Set("Authorization", "Bearer its key")
		r.Header.Set("X-Client-Id", name)
		if id, no := book.Identify(r); no != nil {
			fmt.Println(no.Reason.Status(), no.Detail)
		} else {
			fmt.Println(id.Client, "of", id.Tenant, "as", id.Class, "by", id.Speaker)
		}
	}
	// Output:
	// web of shop as live by edge
	// 403 The header x-client-id names a client for whom it may not speak.
}
