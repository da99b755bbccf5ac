package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quorlease/quorlease/bench/provider"
)

// request is what is understood of a body; whatever else it has is ignored, as a
// provider of a newer version would not.
type request struct {
	Model               string          `json:"model"`
	Messages            json.RawMessage `json:"messages"`
	System              json.RawMessage `json:"system"`
	Tools               json.RawMessage `json:"tools"`
	Instructions        json.RawMessage `json:"instructions"`
	Input               json.RawMessage `json:"input"`
	MaxTokens           *int64          `json:"max_tokens"`
	MaxCompletionTokens *int64          `json:"max_completion_tokens"`
	MaxOutputTokens     *int64          `json:"max_output_tokens"`
	BestOf              int64           `json:"best_of"`
	N                   int64           `json:"n"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Contents          json.RawMessage `json:"contents"`
	SystemInstruction json.RawMessage `json:"systemInstruction"`
	GenerationConfig  struct {
		MaxOutputTokens *int64 `json:"maxOutputTokens"`
	} `json:"generationConfig"`
	InferenceConfig struct {
		MaxTokens *int64 `json:"maxTokens"`
	} `json:"inferenceConfig"`
	EncodingFormat string `json:"encoding_format"`
	Dimensions     int    `json:"dimensions"`
}

// shape is the kind of answer that a route gives.
type shape string

const (
	chat       shape = "chat"
	responses  shape = "responses"
	embeddings shape = "embeddings"
	messages   shape = "messages"
)

var azureDeployment = regexp.MustCompile(`^/openai/deployments/([^/]+)/(chat/completions|embeddings)$`)

// route is what a path asks for; deployment is Azure's name of the model, where the
// path has it.
func route(api API, path string) (what shape, deployment string) {
	if match := azureDeployment.FindStringSubmatch(path); api == Azure && match != nil {
		deployment, path = match[1], "/v1/"+match[2]
	} else if api == Azure {
		path = strings.TrimPrefix(path, "/openai")
	}
	switch {
	case api == Anthropic && path == "/v1/messages":
		return messages, ""
	case api == Anthropic:
		return "", ""
	}
	return map[string]shape{
		"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/embeddings": embeddings,
		"/responses": responses,
	}[path], deployment
}

// credential is what the request shows; it is not compared with anything.
func credential(h http.Header) string {
	bearer := strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
	for _, name := range []string{"x-api-key", "api-key", "x-goog-api-key"} {
		if key := h.Get(name); key != "" {
			return key
		}
	}
	return bearer
}

// parse reads a body and says the first thing that is wrong with it.
func parse(what shape, deployment string, body []byte) (*request, error) {
	r := &request{N: 1, BestOf: 1}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("could not parse the JSON body of the request: %w", err)
	}
	if r.Model == "" {
		r.Model = deployment
	}
	needs := map[shape]json.RawMessage{
		chat: r.Messages, messages: r.Messages, converse: r.Messages, responses: r.Input, embeddings: r.Input,
		contents: r.Contents,
	}[what]
	switch {
	case r.Model == "":
		return nil, errors.New("model: Field required")
	case len(needs) == 0 && what == contents:
		return nil, errors.New("contents: Field required")
	case len(needs) == 0 && (what == chat || what == messages || what == converse):
		return nil, errors.New("messages: Field required")
	case len(needs) == 0:
		return nil, errors.New("input: Field required")
	case what == messages && r.MaxTokens == nil:
		return nil, errors.New("max_tokens: Field required")
	case r.limit() < 1 || r.limit() > 1e6:
		return nil, fmt.Errorf("max_tokens: %d is not within 1 and 10^6", r.limit())
	case r.N != 1:
		return nil, fmt.Errorf("n: %d, and only 1 is simulated", r.N)
	case r.BestOf < 1 || r.BestOf > 16:
		return nil, fmt.Errorf("best_of: %d is not within 1 and 16", r.BestOf)
	case r.Dimensions < 0 || r.Dimensions > 4096:
		return nil, fmt.Errorf("dimensions: %d is not within 0 and 4096", r.Dimensions)
	}
	return r, nil
}

// limit is how long the answer may be.
func (r *request) limit() int64 {
	for _, n := range []*int64{
		r.MaxCompletionTokens, r.MaxOutputTokens, r.MaxTokens, r.GenerationConfig.MaxOutputTokens,
		r.InferenceConfig.MaxTokens,
	} {
		if n != nil {
			return *n
		}
	}
	return outputAssumed
}

// prompt is what is charged for before anything was written.
type prompt struct {
	characters, tokens int64
	// hash is of all of it, and prefix of what comes before the last mark for the
	// cache, with its tokens. They are 0 without a mark.
	hash, prefix uint64
	prefixTokens int64
}

func (r *request) prompt() *prompt {
	p := &prompt{}
	for _, part := range []json.RawMessage{
		r.Tools, r.System, r.Instructions, r.SystemInstruction, r.Messages, r.Contents, r.Input,
	} {
		var value any
		if len(part) > 0 && json.Unmarshal(part, &value) == nil {
			p.walk(value)
		}
	}
	p.tokens, p.characters = max(1, p.tokens), max(1, p.characters)
	return p
}

// structure has the fields that are no text.
var structure = map[string]bool{"type": true, "role": true, "id": true, "cache_control": true}

func (p *prompt) walk(value any) {
	switch value := value.(type) {
	case string:
		p.characters += int64(utf8.RuneCountInString(value))
		p.tokens += tokens(value)
		p.hash = hash(p.hash, value)
	case []any:
		for _, item := range value {
			p.walk(item)
		}
	case map[string]any:
		names := make([]string, 0, len(value))
		for name := range value {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if !structure[name] {
				p.walk(value[name])
			}
		}
		if value["cache_control"] != nil {
			p.prefix, p.prefixTokens = p.hash, p.tokens
		}
	}
}

// estimated is what the account is asked for: how each provider counts a call when
// it arrives. read is how many tokens of the prompt the cache has.
func (s *Server) estimated(what shape, r *request, p *prompt, read int64) provider.Call {
	in := estimate(p.characters)
	switch {
	case s.config.API == Anthropic && s.config.EstimateOutput:
		return provider.Call{Input: max(1, in-read), Output: r.limit()}
	case s.config.API == Anthropic:
		return provider.Call{Input: max(1, in-read)}
	case s.config.API == Gemini || s.config.API == Vertex:
		return provider.Call{Input: max(1, in)}
	case s.config.API == Bedrock:
		return provider.Call{Input: in + r.limit()}
	case what == embeddings:
		return provider.Call{Input: in}
	case s.config.API == Azure:
		return provider.Call{Input: in, Output: r.limit() * r.BestOf}
	default:
		return provider.Call{Input: max(in, r.limit())}
	}
}
