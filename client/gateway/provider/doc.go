// Package provider knows how providers of language models say that they are asked
// too much: OpenAI, Azure OpenAI, Anthropic, Gemini, Vertex AI and Bedrock, and what speaks as
// OpenAI does.
//
// What differs between them is data, a Table each: the codes of their errors, the
// names of their headers, what they count, and where their routes are. Each row
// says where it was seen and when that was last looked at, since such things
// change without notice; Table.Oldest says how stale a table is.
//
// The functions are pure. Classify says what an answer means, ParseLimits what its
// headers say is left, Counting.Charge what a request is charged before it is sent
// and Counting.Settle what it has used, Table.Route where a request names its
// model. What comes from a provider is bounded, and believed where it can be read:
// nothing of it is an error.
//
// Everything is safe for concurrent use; nobody may write to a Table.
package provider
