package client_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

// lines is a buffer that several write to.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// TestSomebodyHears: a client that was told of nobody to alert says in the log that
// it decides by itself. It is not for running beside other tests: the log is the
// process's.
func TestSomebodyHears(t *testing.T) {
	before, log := slog.Default(), &lines{}
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	defer slog.SetDefault(before)
	c, err := client.New(client.Config{Endpoints: []string{"127.0.0.1:1"}, Client: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 5*time.Second; {
		if _, err := c.Acquire(t.Context(), client.Request{Charges: []client.Charge{charge("any", 1)}}); err != nil {
			t.Fatal(err)
		}
		log.mu.Lock()
		heard := strings.Contains(log.text.String(), "msg=ALERT kind=FailOpenStarted")
		log.mu.Unlock()
		if heard {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if got := strings.Count(log.text.String(), "msg=ALERT"); got != 1 {
		t.Errorf("%d alerts in the log, want 1: %s", got, log.text.String())
	}
}
