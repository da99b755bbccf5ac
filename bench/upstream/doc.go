// Package upstream serves simulated providers of language models over HTTP: what
// OpenAI, Azure OpenAI, Anthropic, Gemini, Vertex AI and Bedrock answer, with the statuses, bodies and headers
// that were seen in their documents and in answers, over the accounts of
// bench/provider.
//
// A Server is a handler without a goroutine of its own. Listen puts it on a port of
// the loopback interface. What it knows of time is a Clock: in a synctest bubble
// that is the bubble's, and a scenario of an hour runs in a minute with a clock
// that goes sixty times as fast.
//
// There is no chance in it: the text that is answered, and how long it is, follow
// from the request and Config.Seed.
//
//   - Chat completions, responses, embeddings, messages, contents and converse, plain and
//     streaming.
//   - Prompts are estimated at a token for four characters, and really are what
//     tokens counts: the two differ, as they do at a provider.
//   - What an account is refused for is in provider.Rules. What goes wrong besides
//     is a Fault, from a moment on until another.
//   - The Ledger has each call as the provider saw it.
package upstream
