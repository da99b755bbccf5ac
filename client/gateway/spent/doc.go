// Package spent reads from answers of language models how many tokens they used.
//
// A Meter looks at an answer while it is passed on, a body as an io.Writer beside the
// client (io.TeeReader) or a stream frame by frame, and holds nothing of it but numbers. It
// knows the answers of OpenAI (chat, completions, responses, embeddings), Anthropic
// (messages), Gemini, Bedrock (converse, and what its headers count) and whatever names its
// usage like one of these. Where an answer was cut it says what was used until then:
// providers bill what they have generated, whether somebody still listened or not.
//
// Bodies have to come uncompressed. The package has no clock and starts no goroutine. A
// Meter has one caller.
package spent
