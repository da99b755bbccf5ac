// Package stream passes Server-Sent Events on, as the HTML standard describes them
// (section 9.2), byte for byte and each frame as soon as it is there. So it does with the
// binary messages of Bedrock, and with the elements of one array of JSON (Format).
//
// A Reader cuts a stream into frames, wherever reads happen to end, and looks at the
// first event before anything was passed on: providers answer 200 and then say that they
// are overloaded. What an event means is for package provider to say. A Relay writes
// frames to a client, flushes when the next one has not come yet, and says who ended it.
// AskUsage makes a provider report what a stream used where its client had not asked for
// that, and a Relay takes out of the stream again what the client does not expect.
//
// Memory is bounded by the longest frame that is looked at; what is longer passes in
// pieces. The package has no clock and starts no goroutine. A Reader and a Relay have one
// caller.
package stream
