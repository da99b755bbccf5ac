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

// place is a set of SDKs in a folder.
type place struct {
	tools string
	set   sdk.Set
}

var (
	mu sync.Mutex
	// in has what was installed, by the folder and the set. Guarded by mu.
	in = make(map[place]*sdk.Installed)
)

// Installed are the usual SDKs in a folder of tools, as in InstalledSet.
func Installed(t Test, tools string) *sdk.Installed {
	t.Helper()
	return InstalledSet(t, tools, sdk.Usual)
}

// InstalledSet are the SDKs of a set in a folder of tools, which are installed there if need be. A
// test is skipped, by the name of what is missing, where the machine can't run them.
func InstalledSet(t Test, tools string, set sdk.Set) *sdk.Installed {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	if in[place{tools, set}] != nil {
		return in[place{tools, set}]
	}
	// A cold cache on a slow machine takes half a minute.
	ctx, cancel := context.WithTimeoutCause(t.Context(), 4*time.Minute, errors.New("it took 4 minutes"))
	defer cancel()
	i, err := sdk.Install(ctx, tools, set)
	var missing *sdk.MissingError
	if errors.As(err, &missing) {
		t.Skipf("%s is not installed (Debian: nodejs, npm): no SDK was driven", missing.Program)
	}
	if err != nil {
		t.Fatal(err)
	}
	in[place{tools, set}] = i
	return i
}

// API is whose interface an SDK calls.
func API(name sdk.Name) upstream.API {
	switch name {
	case sdk.Azure7:
		return upstream.Azure
	case sdk.Anthropic1:
		return upstream.Anthropic
	case sdk.Gemini2:
		return upstream.Gemini
	case sdk.Bedrock3, sdk.BedrockSigned3:
		return upstream.Bedrock
	default:
		return upstream.OpenAI
	}
}
