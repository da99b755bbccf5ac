// Package who tells who asks.
//
// A Book has the clients that a gateway knows, by the hashes of their keys. A request's
// client is the one whose key it carries, and the tenant is that client's: both are what
// counters, limits and shared answers go by, so neither is taken from a header that
// anybody may write. The header x-client-id does not make anybody a client. It has to
// agree with the key, or it names a client for whom the key may speak (a gateway further
// out, say); everything else is refused with 403, and a request without a key with 401,
// before anything of it is read, counted or forwarded (S1-26, S1-44).
//
// There is one exception, for whoever tries a gateway on a machine of his own: without
// any configured client, the header alone is the name, for programs on the same machine
// only (Config.Loopback).
//
// Rules that would break programs that work today are rolled out in steps (S1-47): a Mode
// says whether what a rule finds is counted, told or refused.
//
// Forwarded, X-Forwarded-For and the like are not looked at: whoever sends a request
// writes them, and the address of a proxy is that of the connection.
//
// Nothing here has a clock or a goroutine, and everything is safe for concurrent use.
package who
