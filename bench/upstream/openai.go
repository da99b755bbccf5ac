package upstream

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
)

// chatVoice is chat completions, of OpenAI and of Azure.
type chatVoice struct{ *call }

func (v chatVoice) reason() string {
	if v.cut() {
		return "length"
	}
	return "stop"
}

func (v chatVoice) usage() map[string]any {
	return map[string]any{
		"prompt_tokens": v.prompt.tokens, "completion_tokens": v.written, "total_tokens": v.prompt.tokens + v.written,
		"prompt_tokens_details":     map[string]any{"cached_tokens": 0, "audio_tokens": 0},
		"completion_tokens_details": map[string]any{"reasoning_tokens": 0, "audio_tokens": 0},
	}
}

func (v chatVoice) plain() any {
	return map[string]any{
		"id": "chatcmpl-" + v.id, "object": "chat.completion", "created": v.seconds(), "model": v.request.Model,
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": v.reason(), "logprobs": nil,
			"message": map[string]any{"role": "assistant", "content": v.text(0), "refusal": nil},
		}},
		"usage": v.usage(), "system_fingerprint": "fp_simulated",
	}
}

// chunk is one event; usage is there, if only as null, where it was asked for.
func (v chatVoice) chunk(choices []any, usage any) event {
	body := map[string]any{
		"id": "chatcmpl-" + v.id, "object": "chat.completion.chunk", "created": v.seconds(),
		"model": v.request.Model, "choices": choices, "system_fingerprint": "fp_simulated",
	}
	if v.request.StreamOptions.IncludeUsage {
		body["usage"] = usage
	}
	return event{"", body}
}

func (v chatVoice) choice(delta map[string]any, reason any) event {
	return v.chunk([]any{
		map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": reason},
	}, nil)
}

func (v chatVoice) open() []event {
	return []event{v.choice(map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil)}
}

func (v chatVoice) part(text string) []event {
	return []event{v.choice(map[string]any{"content": text}, nil)}
}

// close has the usage in a chunk of its own, only where it was asked for.
func (v chatVoice) close() []event {
	events := []event{v.choice(map[string]any{}, v.reason())}
	if v.request.StreamOptions.IncludeUsage {
		events = append(events, v.chunk([]any{}, v.usage()))
	}
	return append(events, event{"", "[DONE]"})
}

// responsesVoice is OpenAI's responses, with one message of text.
type responsesVoice struct{ *call }

func (v responsesVoice) piece(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

func (v responsesVoice) item(status string, content ...any) map[string]any {
	return map[string]any{
		"type": "message", "id": "msg_" + v.id, "status": status, "role": "assistant",
		"content": append([]any{}, content...),
	}
}

func (v responsesVoice) body(status string, output ...any) map[string]any {
	body := map[string]any{
		"id": "resp_" + v.id, "object": "response", "created_at": v.seconds(), "status": status, "error": nil,
		"incomplete_details": nil, "model": v.request.Model, "output": append([]any{}, output...), "usage": nil,
		"max_output_tokens": v.request.MaxOutputTokens, "parallel_tool_calls": true, "tools": []any{},
		"tool_choice": "auto", "metadata": map[string]any{}, "instructions": nil, "temperature": 1, "top_p": 1,
	}
	if status == "incomplete" {
		body["incomplete_details"] = map[string]any{"reason": "max_output_tokens"}
	}
	if status == "completed" || status == "incomplete" {
		body["usage"] = map[string]any{
			"input_tokens": v.prompt.tokens, "input_tokens_details": map[string]any{"cached_tokens": 0},
			"output_tokens": v.written, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
			"total_tokens": v.prompt.tokens + v.written,
		}
	}
	return body
}

// ended is the last status, which is also the name of the last event.
func (v responsesVoice) ended() string {
	if v.cut() {
		return "incomplete"
	}
	return "completed"
}

func (v responsesVoice) plain() any {
	return v.body(v.ended(), v.item(v.ended(), v.piece(v.text(0))))
}

// numbered gives events their type, and a number in their order from first on.
func numbered(first int64, events ...event) []event {
	for i, e := range events {
		data := e.data.(map[string]any)
		data["type"], data["sequence_number"] = e.name, first+int64(i)
	}
	return events
}

func (v responsesVoice) at(more map[string]any) map[string]any {
	more["item_id"], more["output_index"], more["content_index"] = "msg_"+v.id, 0, 0
	return more
}

func (v responsesVoice) open() []event {
	return numbered(
		0,
		event{"response.created", map[string]any{"response": v.body("in_progress")}},
		event{"response.in_progress", map[string]any{"response": v.body("in_progress")}},
		event{"response.output_item.added", map[string]any{"output_index": 0, "item": v.item("in_progress")}},
		event{"response.content_part.added", v.at(map[string]any{"part": v.piece("")})},
	)
}

func (v responsesVoice) part(text string) []event {
	return numbered(int64(4+v.events), event{
		"response.output_text.delta", v.at(map[string]any{"delta": text, "logprobs": []any{}}),
	})
}

func (v responsesVoice) close() []event {
	whole := v.text(0)
	item := v.item(v.ended(), v.piece(whole))
	return numbered(
		int64(4+v.events),
		event{"response.output_text.done", v.at(map[string]any{"text": whole, "logprobs": []any{}})},
		event{"response.content_part.done", v.at(map[string]any{"part": v.piece(whole)})},
		event{"response.output_item.done", map[string]any{"output_index": 0, "item": item}},
		event{"response." + v.ended(), map[string]any{"response": v.body(v.ended(), item)}},
	)
}

// embeddingsVoice is vectors that follow from the input. It never streams.
type embeddingsVoice struct{ *call }

// inputs is how many texts there are: one, unless it is a list of them.
func (v embeddingsVoice) inputs() int {
	var list []any
	if json.Unmarshal(v.request.Input, &list) != nil || len(list) == 0 {
		return 1
	}
	if _, number := list[0].(float64); number {
		return 1
	}
	return len(list)
}

// vector has a length of one, as that of a provider has.
func (v embeddingsVoice) vector(input int) []float32 {
	size := v.request.Dimensions
	if size == 0 {
		size = 64
	}
	seed := hash(v.seed(), fmt.Sprint(input))
	vector := make([]float32, size)
	for i := range vector {
		sign := float64(int64(mix(seed+uint64(i))&2) - 1)
		vector[i] = float32(sign / math.Sqrt(float64(size)))
	}
	return vector
}

func (v embeddingsVoice) plain() any {
	data := make([]any, v.inputs())
	for i := range data {
		var embedding any = v.vector(i)
		if v.request.EncodingFormat == "base64" {
			var bytes []byte
			for _, x := range v.vector(i) {
				bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(x))
			}
			embedding = base64.StdEncoding.EncodeToString(bytes)
		}
		data[i] = map[string]any{"object": "embedding", "index": i, "embedding": embedding}
	}
	return map[string]any{
		"object": "list", "data": data, "model": v.request.Model,
		"usage": map[string]any{"prompt_tokens": v.prompt.tokens, "total_tokens": v.prompt.tokens},
	}
}

func (embeddingsVoice) open() []event       { return nil }
func (embeddingsVoice) part(string) []event { return nil }
func (embeddingsVoice) close() []event      { return nil }
