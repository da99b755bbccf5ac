package deploy_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/alert"
)

const alertmanagerFile = "alertmanager/alertmanager.yml"

// amtool asks Alertmanager's own tool and returns what it prints.
func amtool(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("amtool")
	if err != nil {
		t.Skip("amtool is not installed (Debian: prometheus-alertmanager): the example configuration was not checked")
	}
	return run(t, program, args...)
}

// TestAlertmanagerConfig checks the example, and where each alert of the rules goes.
func TestAlertmanagerConfig(t *testing.T) {
	amtool(t, "check-config", alertmanagerFile)
	atNight := map[string]bool{
		"QuorumLost": true, "DiskLow": true, "SpendCapReached": true, "FailOpenStarted": true,
		"ClientRetryWarning": true, "ClientOverBudget": true,
	}
	for _, r := range readRules(t, true) {
		want := map[bool]string{true: "night", false: "day"}[atNight[r.Alert]]
		got := amtool(t, "config", "routes", "test", "--config.file="+alertmanagerFile,
			"alertname="+r.Alert, "severity="+r.Labels["severity"])
		if lines := strings.Fields(got); lines[len(lines)-1] != want {
			t.Errorf("%s goes to %s, want %s", r.Alert, lines[len(lines)-1], want)
		}
	}
}

// startAlertmanager starts one with the example, on loopback and alone. Its
// receivers are not there, and need not be.
func startAlertmanager(t *testing.T) (url string) {
	t.Helper()
	program, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		t.Skip("no Alertmanager is installed (Debian: prometheus-alertmanager): the example was not run")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	config, err := filepath.Abs(alertmanagerFile)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(ctx, program, "--config.file="+config, "--storage.path="+t.TempDir(),
		"--web.listen-address="+address, "--cluster.listen-address=")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		// It was killed: that is its error.
		_ = command.Wait()
	})
	return "http://" + address
}

// ask decodes what the Alertmanager answers; false where it does not.
func ask(t *testing.T, url string, into any) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK && (into == nil || json.NewDecoder(response.Body).Decode(into) == nil)
}

// within asks again and again until it is so, for some seconds.
func within(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-tick.C {
		if so() {
			return
		}
	}
	t.Fatalf("%s: not within 20s", what)
}

// TestAlertmanagerGroupsAndInhibits gives a real one what three nodes and a client
// say: one notification a client, and of clients none while the quorum is lost.
func TestAlertmanagerGroupsAndInhibits(t *testing.T) {
	url := startAlertmanager(t)
	within(t, "ready", func() bool { return ask(t, url+"/-/ready", nil) })
	sink, err := alert.Alertmanager(url)
	if err != nil {
		t.Fatal(err)
	}
	send := func(kind, name, client string, severity alert.Severity, over bool) {
		a := alert.Alert{Kind: kind, Name: name, ID: "i", Severity: severity, Started: time.Now(), Text: kind, Resolved: over}
		if client != "" {
			a.Labels = map[string]string{"client": client}
		}
		if over {
			a.Ended = time.Now()
		}
		if err := sink.Send(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range []string{"n1", "n2", "n3"} {
		send("ClientOverBudget", node, "batch-scorer", alert.Warning, false)
		send("ClientRetryWarning", node, "batch-scorer", alert.Warning, false)
	}
	send("ClientRetryWarning", "n1", "other", alert.Warning, false)
	send("FailOpenStarted", "app", "", alert.Critical, false)
	var groups []struct {
		Labels   map[string]string
		Receiver struct{ Name string }
		Alerts   []json.RawMessage
	}
	within(t, "four groups at night", func() bool {
		return ask(t, url+"/api/v2/alerts/groups?receiver=night", &groups) && len(groups) == 4
	})
	for _, g := range groups {
		want := map[string]int{"batch-scorer": 3}[g.Labels["client"]]
		if got := len(g.Alerts); got != max(1, want) {
			t.Errorf("%v has %d alerts, want %d", g.Labels, got, max(1, want))
		}
	}
	suppressed := func() (kinds string) {
		var alerts []struct {
			Labels map[string]string
			Status struct{ State string }
		}
		ask(t, url+"/api/v2/alerts?active=false&inhibited=true", &alerts)
		seen := map[string]bool{}
		for _, a := range alerts {
			seen[a.Labels["alertname"]+" "+a.Labels["client"]] = a.Status.State == "suppressed"
		}
		for _, kind := range []string{
			"ClientOverBudget batch-scorer", "ClientRetryWarning batch-scorer", "ClientRetryWarning other", "FailOpenStarted ",
		} {
			if seen[kind] {
				kinds += kind + ","
			}
		}
		return kinds
	}
	const warned = "ClientRetryWarning batch-scorer,"
	within(t, "no warning of whose budget is spent", func() bool { return suppressed() == warned })
	send("QuorumLost", "n1", "", alert.Critical, false)
	const all = "ClientOverBudget batch-scorer," + warned + "ClientRetryWarning other,FailOpenStarted ,"
	within(t, "nothing of clients while there is no quorum", func() bool { return suppressed() == all })
	send("QuorumLost", "n1", "", alert.Critical, true)
	within(t, "clients again", func() bool { return suppressed() == warned })
}
