// Package attempt tells retries from first attempts, whether they say so or not.
//
// What clients declare comes in several headers with several ways of counting
// (Markers). All become the number of retries made, 0 for the first attempt. Layers
// are nested: a proxy repeats what an SDK sent, and the SDK repeats what its
// application sent. So two numbers come of them:
//
//   - Retries is the largest of the markers, never their sum. It is what a retry
//     budget counts, and what the next attempt is told from.
//   - Ceiling is what a maximum of retries is compared with. It is the product over the
//     layers of their tries, minus 1: a layer repeats only after the one inside
//     it has used up its own tries, so that an application in its second round, around
//     an SDK in its second try, is at the fourth call at least. Each layer alone stays
//     below a maximum of 3 while together they make 64 calls; the product passes it at
//     the fifth. Markers of one layer count once, with their largest.
//
// A client that declares nothing, or always 0, is seen through what it sends (Table):
// work that comes again after it failed is a retry. That can only raise a number.
package attempt
