package match

import "strings"

// Key is the key that values make, in the order of per. One value is the key
// itself, so that people can name it. Several are joined by "|"; a "|" or a "\" in
// a value gets a "\" before it, so that no two lists of as many values make the
// same key (A22).
func Key(values ...string) string {
	switch len(values) {
	case 0:
		return ""
	case 1:
		return values[0]
	}
	size := len(values) - 1
	for _, v := range values {
		size += len(v) + strings.Count(v, "|") + strings.Count(v, `\`)
	}
	var key strings.Builder
	key.Grow(size)
	for i, v := range values {
		if i > 0 {
			key.WriteByte('|')
		}
		for {
			at := strings.IndexAny(v, `|\`)
			if at < 0 {
				break
			}
			key.WriteString(v[:at])
			key.WriteByte('\\')
			key.WriteByte(v[at])
			v = v[at+1:]
		}
		key.WriteString(v)
	}
	return key.String()
}
