package upstream

// messagesVoice is Anthropic's messages.
type messagesVoice struct{ *call }

// usage counts what the cache has apart; output is what had been written.
func (v messagesVoice) usage(output int64) map[string]any {
	return map[string]any{
		"input_tokens": v.prompt.tokens - v.read - v.created, "cache_creation_input_tokens": v.created,
		"cache_read_input_tokens": v.read, "output_tokens": output, "service_tier": "standard",
	}
}

func (v messagesVoice) reason() string {
	if v.cut() {
		return "max_tokens"
	}
	return "end_turn"
}

func (v messagesVoice) message(content []any, reason any, output int64) map[string]any {
	return map[string]any{
		"id": "msg_" + v.id, "type": "message", "role": "assistant", "model": v.request.Model, "content": content,
		"stop_reason": reason, "stop_sequence": nil, "usage": v.usage(output),
	}
}

func (v messagesVoice) plain() any {
	return v.message([]any{map[string]any{"type": "text", "text": v.text(0)}}, v.reason(), v.written)
}

// typed gives an event its name as its type.
func typed(name string, data map[string]any) event {
	data["type"] = name
	return event{name, data}
}

func (v messagesVoice) open() []event {
	return []event{
		typed("message_start", map[string]any{"message": v.message([]any{}, nil, 1)}),
		typed("content_block_start", map[string]any{
			"index": 0, "content_block": map[string]any{"type": "text", "text": ""},
		}),
		ping,
	}
}

func (v messagesVoice) part(text string) []event {
	return []event{typed("content_block_delta", map[string]any{
		"index": 0, "delta": map[string]any{"type": "text_delta", "text": text},
	})}
}

// close has the usage of all of it: it is no sum to be added up.
func (v messagesVoice) close() []event {
	return []event{
		typed("content_block_stop", map[string]any{"index": 0}),
		typed("message_delta", map[string]any{
			"delta": map[string]any{"stop_reason": v.reason(), "stop_sequence": nil},
			"usage": map[string]any{"output_tokens": v.written},
		}),
		typed("message_stop", map[string]any{}),
	}
}
