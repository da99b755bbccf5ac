// Package digest mixes the words of one record into 64 bits.
//
// The state hash of a node is the sum of the digests of all records of its
// state (G9). A sum does not depend on order, so that it can be kept up to date
// record by record: take the old digest off, add the new one. It is there to
// find replicas that differ by accident. It is not made against somebody who
// constructs collisions, and the signature of nothing.
//
// The package is pure and gives the same numbers on every architecture.
package digest

import "math/bits"

// The multipliers are odd, have about as many ones as zeroes, and come from the
// fractions of the golden ratio and of pi.
const (
	mixWord = 0x9e3779b97f4a7c15
	mixEnd  = 0x243f6a8885a308d3
)

// Sum is a digest in the making. The words and their order are the record's
// meaning: give each kind of record a tag of its own.
type Sum struct{ state uint64 }

// New begins the digest of a record of the kind tag.
func New(tag uint64) Sum {
	s := Sum{state: mixEnd}
	s.Word(tag)
	return s
}

// Word adds one word.
//
// A product is zero where one factor is; the rotated word keeps the state from
// forgetting what it has seen.
func (s *Sum) Word(x uint64) {
	hi, lo := bits.Mul64(s.state^x, mixWord)
	s.state = hi ^ lo ^ bits.RotateLeft64(x, 29)
}

// Int adds a signed number.
func (s *Sum) Int(x int64) { s.Word(uint64(x)) }

// Bool adds a yes or no.
func (s *Sum) Bool(x bool) {
	if x {
		s.Word(1)
		return
	}
	s.Word(0)
}

// Text adds a string: its length, then its bytes, eight to a word. With the
// length before it, no two lists of strings are the same words.
func (s *Sum) Text(x string) {
	s.Word(uint64(len(x)))
	for len(x) >= 8 {
		s.Word(uint64(x[0]) | uint64(x[1])<<8 | uint64(x[2])<<16 | uint64(x[3])<<24 |
			uint64(x[4])<<32 | uint64(x[5])<<40 | uint64(x[6])<<48 | uint64(x[7])<<56)
		x = x[8:]
	}
	if len(x) == 0 {
		return
	}
	last := uint64(0)
	for i := len(x) - 1; i >= 0; i-- {
		last = last<<8 | uint64(x[i])
	}
	s.Word(last)
}

// Value is the digest of the words so far.
func (s *Sum) Value() uint64 {
	hi, lo := bits.Mul64(s.state^mixWord, mixEnd)
	return hi ^ lo ^ bits.RotateLeft64(s.state, 32)
}
