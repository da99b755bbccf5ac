// Package address is which addresses may be asked for, and which asked.
package address

import (
	"net/url"
	"slices"
	"strings"
)

// IsPlain says whether a path, decoded, means the same to everybody: no segment of it is
// empty or takes another one away. What is forwarded has to be what was looked at.
func IsPlain(path string) bool {
	if path == "" || path[0] != '/' || strings.Contains(path, `\`) {
		return false
	}
	rest := strings.TrimSuffix(path[1:], "/")
	if rest == "" {
		return path == "/"
	}
	for segment := range strings.SplitSeq(rest, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// Problem is what is wrong with where a provider is. Its password, which must not be
// there, is not repeated.
func Problem(u *url.URL) string {
	switch {
	case u == nil:
		return "is missing"
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return u.Redacted() + " is no http or https address"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return u.Redacted() + " must have nothing but a scheme, a host and a path"
	case u.Path != "" && !IsPlain(u.Path):
		return u.Redacted() + " has empty or dotted segments"
	}
	return ""
}

// WithoutKey is a query without the key that clients of Google's may put there.
func WithoutKey(query string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		return err != nil || name == "key" || name == "access_token"
	}), "&")
}
