// Command ask asks a model through a gateway, and does as it is told where the answer is no.
//
//	go run ./examples/programs/ask "How long is a minute?"
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"time"
)

const (
	triesMax = 3
	// answerMax bounds what is read of an answer.
	answerMax = 1 << 20
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	question := "How long is a minute?"
	if len(os.Args) > 1 {
		question = os.Args[1]
	}
	text, err := ask(ctx, question)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ask:", err)
		os.Exit(1)
	}
	fmt.Println(text)
}

// ask tries up to three times. The gateway has retried already: a further try comes after the
// wait that it asks for, and says which it is.
func ask(ctx context.Context, question string) (string, error) {
	body, err := json.Marshal(map[string]any{
		"model": "gpt-4o-mini", "max_tokens": 64,
		"messages": []map[string]string{{"role": "user", "content": question}},
	})
	if err != nil {
		return "", err
	}
	for attempt := 0; ; attempt++ {
		a, err := send(ctx, body, attempt)
		if err != nil {
			return "", err
		}
		if a.status == http.StatusOK {
			return textOf(a.body)
		}
		wait, err := strconv.Atoi(a.header.Get("Retry-After"))
		// Who is told not to retry stops, whatever the wait is.
		if err != nil || a.header.Get("X-Should-Retry") == "false" || attempt+1 == triesMax {
			return "", fmt.Errorf("%d: %s", a.status, bytes.TrimSpace(a.body))
		}
		select {
		case <-time.After(time.Duration(wait) * time.Second):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send sends one attempt, of which 0 is the first.
func send(ctx context.Context, body []byte, attempt int) (*answer, error) {
	url := cmp.Or(os.Getenv("GATEWAY"), "http://127.0.0.1:7401") + "/v1/chat/completions"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Client-Id", cmp.Or(os.Getenv("CLIENT"), "notes"))
	request.Header.Set("X-Retry-Attempt", strconv.Itoa(attempt))
	request.Header.Set("Authorization", "Bearer "+cmp.Or(os.Getenv("OPENAI_API_KEY"), "none"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, answerMax))
	if err != nil {
		return nil, err
	}
	return &answer{response.StatusCode, response.Header, read}, nil
}

// textOf is what the model says.
func textOf(body []byte) (string, error) {
	var completion struct {
		Choices []struct {
			Message struct{ Content string }
		}
	}
	if err := json.Unmarshal(body, &completion); err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	if len(completion.Choices) == 0 {
		return "", fmt.Errorf("read answer: no choice in %q", body)
	}
	return completion.Choices[0].Message.Content, nil
}
