package upstream

import (
	"hash/fnv"
	"unicode"
)

// hash is of a seed and texts, 64 bits that are the same everywhere.
func hash(seed uint64, texts ...string) uint64 {
	h := fnv.New64a()
	var bytes [8]byte
	for i := range bytes {
		bytes[i] = byte(seed >> (8 * i))
	}
	// A hash of the standard library never fails to take what it is given.
	_, _ = h.Write(bytes[:])
	for _, text := range texts {
		_, _ = h.Write([]byte(text))
		_, _ = h.Write([]byte{0})
	}
	return mix(h.Sum64())
}

// mix is the last step of splitmix64: one bit more changes half of them.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// words are what answers are made of, each of them one token.
var words = [...]string{
	" the", " permit", " was", " asked", " for", " once", " and", " kept", " until", " noon", " when", " a", " clock",
	" came", " round", " again", " with", " less", " to", " spend", " than", " it", " had", " before", ",", ".",
}

// word is the n-th token of the text that follows from a hash.
func word(of uint64, n int64) string {
	return words[mix(of+uint64(n)*0x9e3779b97f4a7c15)%uint64(len(words))]
}

// text is tokens from one on, up to another.
func text(of uint64, from, to int64) string {
	var s []byte
	for n := from; n < to; n++ {
		s = append(s, word(of, n)...)
	}
	return string(s)
}

// estimate is a token for four characters, which is all that is known of a prompt
// when it arrives.
func estimate(characters int64) int64 { return (characters + 3) / 4 }

// tokens is how many a text really has: one for six letters of a word, one for three
// digits of a number, one for any other character that is no single space.
func tokens(text string) (n int64) {
	letters, digits := int64(0), int64(0)
	flush := func() {
		n += (letters+5)/6 + (digits+2)/3
		letters, digits = 0, 0
	}
	for _, r := range text {
		switch {
		case r < unicode.MaxASCII && unicode.IsLetter(r):
			letters++
		case unicode.IsDigit(r):
			digits++
		case r == ' ':
			flush()
		default:
			flush()
			n++
		}
	}
	flush()
	return n
}
