// Package provider is a model of how providers of language models limit their
// callers: three ways that were seen in documents and in answers.
//
//   - Fluid has nothing but a headroom that grows with time. It is how an incident
//     is reckoned on paper.
//   - Buckets are token buckets that fill continuously, one a dimension, with an
//     optional second-long window for requests.
//   - Minute is a counter of estimated tokens that starts anew each minute.
//
// Account is one of the latter two with what providers refuse for besides: too
// many calls at once, growth that is too fast, and a spend cap.
//
// A model is a function of what it was asked and when: time is an argument, the
// arithmetic is exact, and there is no chance in it. A model is for one
// goroutine.
package provider
