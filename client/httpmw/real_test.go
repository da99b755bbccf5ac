package httpmw

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/clienttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestARealClient wants the burst to pass and no more, everything to pass while
// nobody answers, and nobody to wait for the dead.
func TestARealClient(t *testing.T) {
	t.Parallel()
	t.Run("G8_fail_open_means_pass", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cluster, err := clienttest.New(3)
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Close()
			err = cluster.LimitsFile("limits:\n- {name: api, per: [key], rate: {requests: 5/h}, burst: {requests: 5}}\n")
			if err != nil {
				t.Fatal(err)
			}
			c, err := client.New(client.Config{Endpoints: cluster.Endpoints(), Client: "web", Dial: cluster.Dial})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			config := Config{Decider: c, Request: ByKey("api", byTenant)}
			for i := range 8 {
				answer, passed, found := serve(t, config)
				if passed != (i < 5) || passed != (answer.Code == http.StatusTeapot) || passed && found.Source == client.Local {
					t.Errorf("request %d: passed %t, answered %d, %+v", i, passed, answer.Code, found)
				}
				if after := answer.Header().Get("Retry-After"); !passed && len(after) != 3 {
					t.Errorf("request %d: Retry-After %q, want twelve minutes or a little more", i, after)
				}
			}
			cluster.Down(0, 1, 2)
			for i := range 50 {
				began := time.Now()
				_, passed, found := serve(t, config)
				if took := time.Since(began); !passed || found.Source != client.Local || took > client.DefaultDeadline {
					t.Errorf("request %d without anybody: passed %t, %+v, after %s", i, passed, found, took)
				}
			}
		})
	})
}
