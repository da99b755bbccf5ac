// Package convert turns requests of the public protocol into operations of the
// log, and results of the log into answers.
//
// It happens here, once, and nowhere else: above there are only public messages,
// below there are only those of the log. Requests are checked on the way. The
// error is limitsfile.FieldErrors and names every field that can't be used, as
// the public protocol calls it; nothing of such a request reaches a node.
//
// Enums of both protocols have the same numbers, which a test holds them to. The
// package is pure but for the lease ids that it draws.
package convert
