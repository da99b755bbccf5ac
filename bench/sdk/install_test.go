package sdk_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/sdk"
	"github.com/quorlease/quorlease/bench/sdk/sdktest"
)

// It sets the environment, and so is alone.
func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Setenv("PATH", "")
	_, err := sdk.Install(t.Context(), t.TempDir(), sdk.Usual)
	var missing *sdk.MissingError
	if !errors.As(err, &missing) || missing.Program != "node" {
		t.Errorf("%v, want that node is missing", err)
	}
}

func TestInstallLeavesNothingBehindWhereItFails(t *testing.T) {
	// npm that says no, and node that is there.
	bin := t.TempDir()
	for program, script := range map[string]string{"node": "exit 0", "npm": "echo no registry; exit 7"} {
		if err := os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	cache := filepath.Join(t.TempDir(), "cache")
	_, err := sdk.Install(t.Context(), cache, sdk.Usual)
	if err == nil || !strings.Contains(err.Error(), "npm ci: exit status 7\nno registry") {
		t.Errorf("%v, want what npm said", err)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	file := filepath.Join(bin, "node")
	if _, err := sdk.Install(t.Context(), file, sdk.Usual); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v, want that %s is no folder", err, file)
	}
}

// npm that hangs, and a child of it that does: both are gone when the time is over.
func TestNobodyIsLeftBehind(t *testing.T) {
	bin := t.TempDir()
	children := filepath.Join(bin, "children")
	hang := "sleep 600 & echo $! $$ >" + children + ".new; mv " + children + ".new " + children + "; wait"
	for program, script := range map[string]string{"node": "exit 0", "npm": hang} {
		if err := os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	late := errors.New("it is late")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		_, err := sdk.Install(ctx, filepath.Join(bin, "cache"), sdk.Usual)
		ended <- err
	}()
	until(t, func() bool { _, err := os.Stat(children); return err == nil })
	cancel(late)
	if err := <-ended; !errors.Is(err, late) {
		t.Errorf("%v, want %v", err, late)
	}
	said, err := os.ReadFile(children)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(said)) {
		until(t, func() bool { return !runs(pid) })
	}
}

// runs says whether a process is there that is not dead.
func runs(pid string) bool {
	status, err := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(status), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

// until waits for a condition.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatal("it does not come true in a minute")
		}
		<-time.After(10 * time.Millisecond)
	}
}

func TestPlansAreChecked(t *testing.T) {
	t.Parallel()
	i := sdktest.Installed(t, "../../.tools")
	for want, plan := range map[string]struct {
		name sdk.Name
		call sdk.Call
	}{
		"calls[0].times: 100001":      {sdk.OpenAI7, sdk.Call{Times: 100_001}},
		`calls[0].what: "audio"`:      {sdk.OpenAI7, sdk.Call{What: "audio"}},
		"sdk: gemini@1 is none of op": {"gemini@1", sdk.Call{}},
	} {
		if _, err := i.Drive(t.Context(), plan.name, sdk.Pace{}, plan.call); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
