package dev

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/supervise"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func freeOptions(nodes int) Options {
	return Options{Nodes: nodes, RaftMultiplier: 1, LogLevel: "warn", Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}
}

func TestSampleIsValid(t *testing.T) {
	t.Parallel()
	request, err := limitsfile.ParseNamed("sample.yaml", sampleLimits)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := limitsfile.ResolveAll(request); err != nil {
		t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		options Options
		want    string
	}{
		{Options{Nodes: 3, GRPCPort: 7101, PeerPort: 7201, HTTPPort: 7301}, ""},
		{Options{Nodes: 1, HTTPPort: 65535}, ""},
		{Options{Nodes: 0}, "--nodes 0 is outside 1 to 9"},
		{Options{Nodes: 10}, "--nodes 10 is outside 1 to 9"},
		{Options{Nodes: 2, PeerPort: 65535}, "--peer-port 65535 is outside 0 to 65534 for 2 nodes"},
		{Options{Nodes: 2, GRPCPort: -1}, "--grpc-port -1 is outside 0 to 65534"},
	} {
		err := row.options.Check()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: got %v, want %q", row.options, err, row.want)
		}
	}
}

// TestOutlook: only what would come back is said to.
func TestOutlook(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		event supervise.Event
		want  string
	}{
		{supervise.Event{Code: -1}, "1 of 2 nodes are left (--restart would bring it back)"},
		{supervise.Event{Code: -1, RestartIn: time.Second}, "starting it again in 1s"},
		{supervise.Event{Code: exit.Removed}, "1 of 2 nodes are left"},
	} {
		if got := outlook(row.event, 1, 2); got != row.want {
			t.Errorf("%+v: %q, want %q", row.event, got, row.want)
		}
	}
}

func TestLayoutIsFoundAgain(t *testing.T) {
	t.Parallel()
	o := freeOptions(3)
	o.Data = filepath.Join(t.TempDir(), "new", "cluster")
	first, err := newLayout(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]bool{}
	for _, m := range first.members {
		for _, addr := range []string{m.GRPC, m.Peer, m.HTTP} {
			ports[addr] = true
		}
	}
	if len(ports) != 9 {
		t.Errorf("%d addresses for three nodes, want 9: %+v", len(ports), first.members)
	}
	again, err := newLayout(t.Context(), o)
	if err != nil || !slices.Equal(again.members, first.members) {
		t.Errorf("got %+v, %v, want %+v", again, err, first.members)
	}
	if err := again.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(o.Data, layoutFile)); err != nil {
		t.Errorf("the layout of a named directory must stay: %v", err)
	}
	o.Nodes = 5
	if _, err := newLayout(t.Context(), o); err == nil || !strings.Contains(err.Error(), "holds a cluster of 3 nodes") {
		t.Errorf("got %v, want a refusal", err)
	}
	o.Nodes, o.PeerPort = 3, 1
	if _, err := newLayout(t.Context(), o); err == nil || !strings.Contains(err.Error(), "--peer-port") {
		t.Errorf("got %v, want a refusal", err)
	}
	if err := os.WriteFile(filepath.Join(o.Data, layoutFile), []byte("nonsense: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newLayout(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is not what dev wrote") {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestLayoutIsTemporaryByDefault(t *testing.T) {
	t.Parallel()
	l, err := newLayout(t.Context(), freeOptions(1))
	if err != nil {
		t.Fatal(err)
	}
	specs, err := l.specs(freeOptions(1))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(specs[0].Args, " "); !strings.Contains(got, " --bootstrap-expect 1 ") ||
		!strings.Contains(got, " --data "+filepath.Join(l.dir, "n1")) {
		t.Errorf("arguments %q", got)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", l.dir, err)
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	o := freeOptions(1)
	if o.HTTPPort, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	o.Data = filepath.Join(t.TempDir(), "d")
	want := "--http-port 127.0.0.1:" + port + " is taken"
	if _, err := newLayout(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if _, err := os.Stat(o.Data); !os.IsNotExist(err) {
		t.Errorf("a refused start left %s behind: %v", o.Data, err)
	}
}

func TestEnvironmentOfNode(t *testing.T) {
	t.Parallel()
	got := environmentOfNode([]string{"PATH=/bin", "QUORLEASE_ID=x", "QUORLEASE_GRPC=y", "HOME=/"})
	if !slices.Equal(got, []string{"PATH=/bin", "HOME=/"}) {
		t.Errorf("got %q: a node must not take dev's settings for its own", got)
	}
}

func TestSuggestion(t *testing.T) {
	t.Parallel()
	limit := func(name string, burst int64, classes ...*quorleasev1.Class) *quorleasev1.Limit {
		return &quorleasev1.Limit{
			Name: name, Classes: classes,
			Dimensions: []*quorleasev1.Dimension{{Name: "requests", Burst: proto.Int64(burst)}},
		}
	}
	live := &quorleasev1.Class{Name: "live", ShareBp: 6000}
	batch := &quorleasev1.Class{Name: "batch", ShareBp: 1000, BurstBp: proto.Int64(2500)}
	keyed := limit("keyed", 7)
	keyed.Per = []string{"key"}
	for _, row := range []struct {
		name   string
		limits []*quorleasev1.Limit
		want   string
	}{
		{"none", nil, ""},
		{"unlimited", []*quorleasev1.Limit{{Name: "free", Unlimited: true}}, ""},
		{"nothing to have", []*quorleasev1.Limit{limit("zero", 0), limit("a", 5)}, "a//requests=5"},
		{"keyed", []*quorleasev1.Limit{keyed}, "keyed/team-a/requests=7"},
		{"what is kept for others", []*quorleasev1.Limit{limit("c", 100, live, batch)}, "c//requests=75"},
		{"the largest", []*quorleasev1.Limit{limit("c", 1<<53, live, batch)}, "c//requests=6755399441055744"},
	} {
		got := ""
		if c := suggestion(row.limits); c != nil {
			got = c.GetLimit() + "/" + c.GetKey() + "/" + c.GetDimension() + "=" + strconv.FormatInt(c.GetAmount(), 10)
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}
