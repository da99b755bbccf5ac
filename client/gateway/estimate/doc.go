// Package estimate says how many tokens a request to a language model will use, before
// anybody has counted them.
//
// A Body reads a request while it comes in, once and in bounded memory, and finds in it
// what a limit asks for: the model, how much output is allowed, how long the prompt is. A
// prompt is not tokenized but counted by a Counter, in one pass without tables, at some
// six nanoseconds a byte. How far that is from what the provider reports is learnt by
// Corrections for each tenant and model, and kept in a histogram, from which the margin
// follows that a limit needs.
//
// The package has no clock and starts no goroutine. A Body and a Counter have one caller;
// Corrections are safe for concurrent use.
package estimate
