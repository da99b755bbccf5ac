package alert

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// gettable is what an Alertmanager says of an alert.
type gettable struct {
	postable
	Status struct {
		State string `json:"state"`
	} `json:"status"`
}

// TestARealAlertmanager wants an Alertmanager to take a beginning, a repeat and
// an end as one alert.
func TestARealAlertmanager(t *testing.T) {
	t.Parallel()
	url := startAlertmanager(t)
	s, err := Alertmanager(url)
	s = mustSink(t, s, err)
	a := example()
	a.Started, a.Link = time.Now().Add(-time.Minute), "http://127.0.0.1:7301"
	for range 2 {
		if err := s.Send(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	got := askAlertmanager(t, url)
	if len(got) != 1 || got[0].Status.State != "active" || got[0].Labels["alertname"] != "QuorumLost" ||
		got[0].Labels["incident"] != a.ID || !got[0].StartsAt.Equal(a.Started.Truncate(time.Millisecond)) {
		t.Fatalf("it has %+v", got)
	}
	if left := time.Until(got[0].EndsAt); left < 4*time.Minute || left > alertmanagerLife {
		t.Errorf("it ends by itself in %s, want %s", left, alertmanagerLife)
	}
	another := a
	another.ID = "i2"
	if err := s.Send(t.Context(), another); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), endOf(a, Alert{Ended: time.Now(), Text: "3 of 3"})); err != nil {
		t.Fatal(err)
	}
	if got := askAlertmanager(t, url); len(got) != 1 || got[0].Labels["incident"] != "i2" {
		t.Errorf("it has %+v, want the other one", got)
	}
}

// startAlertmanager starts one on loopback, alone.
func startAlertmanager(t *testing.T) (url string) {
	t.Helper()
	program, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		program, err = exec.LookPath("alertmanager")
	}
	if err != nil {
		t.Skip("no Alertmanager is installed (Debian: prometheus-alertmanager): what it says of our alerts was not seen")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(config, []byte("route: {receiver: none}\nreceivers: [{name: none}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	command := exec.CommandContext(ctx, program, "--config.file="+config, "--storage.path="+dir,
		"--web.listen-address="+address, "--cluster.listen-address=")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		// It was killed: that is its error.
		_ = command.Wait()
	})
	url = "http://" + address
	deadline, tick := time.Now().Add(20*time.Second), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for ; time.Now().Before(deadline); <-tick.C {
		response, err := askFor(t, url+"/-/ready")
		if err == nil && response.StatusCode == http.StatusOK {
			response.Body.Close()
			return url
		}
	}
	t.Fatal("the Alertmanager is not ready after 20s")
	return ""
}

func askFor(t *testing.T, url string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	return http.DefaultClient.Do(request)
}

func askAlertmanager(t *testing.T, url string) (alerts []gettable) {
	t.Helper()
	response, err := askFor(t, url+alertmanagerPath)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&alerts); err != nil {
		t.Fatal(err)
	}
	return alerts
}
