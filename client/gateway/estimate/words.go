package estimate

import "github.com/quorlease/quorlease/client/gateway/estimate/scan"

// The names that are looked for in a request. The order has a meaning: first those
// whose value is read, then those of a prompt, then the parts of prompts.
const (
	wModel scan.Word = iota + 1
	wUser
	wUserID
	wMaxTokens
	wMaxCompletionTokens
	wMaxOutputTokens
	wMaxOutputTokensCamel
	wMaxTokensCamel
	wMaxGenLen
	wN
	wBestOf
	wCandidateCount
	wStream
	wIncludeUsage
	wStreamOptions
	wMetadata
	wGenerationConfig
	wInferenceConfig
	lastRead = wInferenceConfig

	wMessages scan.Word = iota
	wContents
	wInput
	wPrompt
	wSystem
	wInstructions
	wSuffix
	wQuery
	lastPrompt = wQuery

	wTools scan.Word = iota - 1
	wFunctions
	wResponseFormat
	wText
	lastRaw = wText

	wContent scan.Word = iota - 2
	wParts
	wImageURL
	wImage
	wSource
	wInlineData
	wFile
	wMedia
	wDetail
	wData
	wQuiet
)

var bodyWords = map[string]scan.Word{
	"model": wModel, "user": wUser, "user_id": wUserID, "max_tokens": wMaxTokens,
	"max_completion_tokens": wMaxCompletionTokens, "max_output_tokens": wMaxOutputTokens,
	"maxOutputTokens": wMaxOutputTokensCamel, "n": wN, "best_of": wBestOf, "candidateCount": wCandidateCount,
	"candidate_count": wCandidateCount, "maxTokens": wMaxTokensCamel, "max_new_tokens": wMaxTokensCamel,
	"max_gen_len": wMaxGenLen,
	"stream":      wStream, "include_usage": wIncludeUsage, "stream_options": wStreamOptions, "metadata": wMetadata,
	"generationConfig": wGenerationConfig, "generation_config": wGenerationConfig, "inferenceConfig": wInferenceConfig,

	"messages": wMessages, "contents": wContents, "input": wInput, "prompt": wPrompt, "system": wSystem,
	"systemInstruction": wSystem, "system_instruction": wSystem, "instructions": wInstructions,
	"suffix": wSuffix, "query": wQuery, "inputText": wQuery, "texts": wQuery, "message": wQuery,
	"instances": wQuery, "requests": wQuery,

	"tools": wTools, "toolConfig": wTools, "functions": wFunctions, "response_format": wResponseFormat, "text": wText,

	"content": wContent, "parts": wParts, "image_url": wImageURL, "image": wImage, "source": wSource,
	"inlineData": wInlineData, "inline_data": wInlineData,
	"input_audio": wFile, "file": wFile, "file_data": wFile, "file_id": wFile, "file_url": wFile,
	"fileData": wFile, "document": wFile, "video": wFile, "audio": wFile,
	"media_type": wMedia, "mime_type": wMedia, "mimeType": wMedia, "detail": wDetail,
	"data": wData,

	// What is for the machinery and no part of the prompt.
	"role": wQuiet, "type": wQuiet, "id": wQuiet, "tool_call_id": wQuiet, "tool_use_id": wQuiet,
	"call_id": wQuiet, "cache_control": wQuiet, "signature": wQuiet, "status": wQuiet,
	"toolUseId": wQuiet, "thoughtSignature": wQuiet, "thought_signature": wQuiet, "cachePoint": wQuiet,
}

// fields are the names of what is read for its value, as errors have them.
var fields = [lastRead + 1]string{
	wModel: "model", wUser: "user", wUserID: "metadata.user_id", wMaxTokens: "max_tokens",
	wMaxCompletionTokens: "max_completion_tokens", wMaxOutputTokens: "max_output_tokens",
	wMaxOutputTokensCamel: "generationConfig.maxOutputTokens", wMaxTokensCamel: "inferenceConfig.maxTokens",
	wMaxGenLen: "max_gen_len", wInferenceConfig: "inferenceConfig", wN: "n", wBestOf: "best_of",
	wCandidateCount: "generationConfig.candidateCount", wStream: "stream",
	wIncludeUsage: "stream_options.include_usage", wStreamOptions: "stream_options", wMetadata: "metadata",
	wGenerationConfig: "generationConfig",
}

// within is what a value that is read has to lie in, 0 for the body itself.
var within = [lastRead + 1]scan.Word{
	wUserID: wMetadata, wIncludeUsage: wStreamOptions, wMaxOutputTokensCamel: wGenerationConfig,
	wCandidateCount: wGenerationConfig, wMaxTokensCamel: wInferenceConfig,
}
