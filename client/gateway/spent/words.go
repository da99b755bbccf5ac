package spent

import "github.com/quorlease/quorlease/client/gateway/estimate/scan"

// The names that are looked for in an answer. The first are numbers of usage, each one
// more than its number.
const (
	firstNumber = scan.Word(1)
	lastNumber  = scan.Word(numbersLen)

	wUsage scan.Word = iota + lastNumber - 1
	wHolder
	wDetails
	wType
	wFinish
	wQuiet
	wLogprobs

	// What has generated text in it, right below the answer.
	wChoices
	wDelta
	wContent
	wOutput
	wCandidates
)

func word(n number) scan.Word { return firstNumber + scan.Word(n) }

var words = map[string]scan.Word{
	"prompt_tokens": word(prompt), "promptTokenCount": word(prompt),
	"input_tokens": word(input), "inputTokens": word(input),
	"completion_tokens": word(output), "output_tokens": word(output), "outputTokens": word(output),
	"candidatesTokenCount": word(output), "thoughtsTokenCount": word(thoughts),
	"cached_tokens": word(cached), "cachedContentTokenCount": word(cached), "prompt_cache_hit_tokens": word(cached),
	"cache_read_input_tokens": word(cacheRead), "cacheReadInputTokens": word(cacheRead),
	"cache_creation_input_tokens": word(cacheWrite), "cacheWriteInputTokens": word(cacheWrite),
	"inputTokenCount": word(input), "outputTokenCount": word(output),
	"cacheReadInputTokenCount": word(cacheRead), "cacheWriteInputTokenCount": word(cacheWrite),
	"total_tokens": word(total), "totalTokens": word(total), "totalTokenCount": word(total),

	"usage": wUsage, "usageMetadata": wUsage, "amazon-bedrock-invocationMetrics": wUsage,
	"message": wHolder, "response": wHolder,
	"prompt_tokens_details": wDetails, "input_tokens_details": wDetails,
	"type": wType, "finish_reason": wFinish, "finishReason": wFinish, "stop_reason": wFinish, "stopReason": wFinish,

	"choices": wChoices, "delta": wDelta, "content": wContent, "output": wOutput, "candidates": wCandidates,
	"logprobs": wLogprobs,

	// What stands beside generated text and is none.
	"id": wQuiet, "role": wQuiet, "object": wQuiet, "status": wQuiet, "call_id": wQuiet, "data": wQuiet,
	"signature": wQuiet, "encrypted_content": wQuiet, "stop_sequence": wQuiet,
	"thoughtSignature": wQuiet, "category": wQuiet, "probability": wQuiet, "toolUseId": wQuiet,
}

// ends are the types of events with which an answer ends.
var ends = map[string]bool{
	"message_stop": true, "response.completed": true, "response.incomplete": true, "response.failed": true,
}
