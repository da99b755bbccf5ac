package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// Name is an SDK and the version of its interface.
type Name string

// The SDKs. Azure is part of OpenAI's.
const (
	OpenAI7    Name = "openai@7"
	OpenAI6    Name = "openai@6"
	Azure7     Name = "azure@7"
	Anthropic1 Name = "anthropic@1"

	// Of clouds. The last one signs what it sends, and has no key.
	Gemini2        Name = "gemini@2"
	Bedrock3       Name = "bedrock@3"
	BedrockSigned3 Name = "bedrock-signed@3"
)

// Call is what a user of an SDK calls.
type Call struct {
	// Name is for the results.
	Name string `json:"name"`
	// URL is where, without the interface's own part and without a slash at the end.
	URL string `json:"url"`
	// Client goes along as the header x-client-id.
	Client string `json:"client"`
	// What is which interface is called: "chat", "responses" or "embeddings". Empty:
	// chat. Anthropic has messages, whatever this says.
	What string `json:"what"`
	// Stream asks for a stream, with its usage. Embeddings have none.
	Stream bool `json:"stream"`
	// Times is how often, each as soon as the one before is over. 0: once. At most
	// 100,000.
	Times int `json:"times"`
	// Tokens is how long the answer may be. 0: 16.
	Tokens int `json:"tokens"`
}

var interfaces = map[string]bool{"": true, "chat": true, "responses": true, "embeddings": true}

// Pace is how time passes for an SDK.
type Pace struct {
	// Times is how many times shorter its waits are. 0: 1.
	Times int
	// Most is how long one is at most, after that. 0: 250 ms.
	Most time.Duration
}

// Result is what became of one call.
type Result struct {
	// Name is the call's, N which of its times it was, from 0 on.
	Name string `json:"name"`
	N    int    `json:"n"`
	// Version is the SDK's.
	Version string `json:"version"`
	// OK says whether its user got all of the answer.
	OK bool `json:"ok"`
	// Text is what there was of the answer, or the lengths of vectors, Input and Output the usage that it said.
	Text   string `json:"text"`
	Input  int64  `json:"input"`
	Output int64  `json:"output"`
	// Class is the error that its user got, empty where he got none, though the answer may
	// not be whole. Status is that of the answer, 0 without one, Type and Code what its
	// body said.
	Class   string `json:"class"`
	Status  int    `json:"status"`
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
	// Waits is what it waited for between its attempts, in milliseconds, as it asked
	// its timer; what was no number is 0.
	Waits []float64 `json:"waits"`
}

// Drive runs an SDK in a process that it waits for, and has its calls made one after
// the other.
func (i *Installed) Drive(ctx context.Context, name Name, pace Pace, calls ...Call) ([]Result, error) {
	want := 0
	for n := range calls {
		calls[n].Times = max(1, calls[n].Times)
		if calls[n].Tokens == 0 {
			calls[n].Tokens = 16
		}
		if calls[n].Times > 100_000 {
			return nil, fmt.Errorf("drive %s: calls[%d].times: %d is more than 100000", name, n, calls[n].Times)
		}
		if what := calls[n].What; !interfaces[what] {
			return nil, fmt.Errorf("drive %s: calls[%d].what: %q is none of chat, responses and embeddings", name, n, what)
		}
		want += calls[n].Times
	}
	plan, err := json.Marshal(map[string]any{"sdk": name, "calls": calls})
	if err != nil {
		return nil, fmt.Errorf("drive %s: %w", name, err)
	}
	if pace.Most == 0 {
		pace.Most = 250 * time.Millisecond
	}
	node := program(ctx, i.dir, "node", "--import", "./pace.mjs", "drive.mjs")
	node.Env = append(
		os.Environ(), "QUORLEASE_PACE="+strconv.Itoa(max(1, pace.Times)),
		"QUORLEASE_PACE_MOST="+strconv.FormatInt(pace.Most.Milliseconds(), 10),
	)
	node.Stdin = bytes.NewReader(plan)
	var said, complained bytes.Buffer
	node.Stdout, node.Stderr = &said, &complained
	if err := node.Run(); err != nil {
		return nil, fmt.Errorf("drive %s: %w", name, errors.Join(err, context.Cause(ctx), errors.New(complained.String())))
	}
	results, err := read(&said)
	if err == nil && len(results) != want {
		err = fmt.Errorf("%d results of %d calls", len(results), want)
	}
	if err != nil {
		return nil, fmt.Errorf("drive %s: %w", name, err)
	}
	return results, nil
}

func read(lines io.Reader) (results []Result, err error) {
	for decoder := json.NewDecoder(lines); ; {
		var r Result
		switch err := decoder.Decode(&r); {
		case errors.Is(err, io.EOF):
			return results, nil
		case err != nil:
			return nil, fmt.Errorf("read what it printed: %w", err)
		}
		results = append(results, r)
	}
}
