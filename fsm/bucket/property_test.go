package bucket

import (
	"testing"

	"pgregory.net/rapid"
)

// drawn is a source of rapid's.
type drawn struct{ *rapid.T }

func (d drawn) upTo(what string, most int64) int64 {
	return rapid.Int64Range(0, most).Draw(d.T, what)
}

func TestOracleAgreesOnEveryHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newHistory(t, drawn{t}).run(25) })
}
