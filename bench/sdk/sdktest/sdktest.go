// Package sdktest installs SDKs for tests, once for all packages (bench/sdk).
package sdktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorlease/quorlease/bench/sdk"
	"github.com/quorlease/quorlease/bench/upstream"
)

// Test is a test, of which *testing.T is one.
type Test interface {
	Helper()
	Context() context.Context
	Skipf(format string, args ...any)
	Fatal(args ...any)
}

var (
	mu sync.Mutex
	// in has what was installed, by the folder. Guarded by mu.
	in = make(map[string]*sdk.Installed)
)

// Installed are the SDKs in a folder of tools, which are installed there if need be. A
// test is skipped, by the name of what is missing, where the machine can't run them.
func Installed(t Test, tools string) *sdk.Installed {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	if in[tools] != nil {
		return in[tools]
	}
	// A cold cache on a slow machine takes half a minute.
	ctx, cancel := context.WithTimeoutCause(t.Context(), 4*time.Minute, errors.New("it took 4 minutes"))
	defer cancel()
	i, err := sdk.Install(ctx, tools)
	var missing *sdk.MissingError
	if errors.As(err, &missing) {
		t.Skipf("%s is not installed (Debian: nodejs, npm): no SDK was driven", missing.Program)
	}
	if err != nil {
		t.Fatal(err)
	}
	in[tools] = i
	return i
}

// API is whose interface an SDK calls.
func API(name sdk.Name) upstream.API {
	switch name {
	case sdk.Azure7:
		return upstream.Azure
	case sdk.Anthropic1:
		return upstream.Anthropic
	default:
		return upstream.OpenAI
	}
}
