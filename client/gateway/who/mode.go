package who

import "fmt"

// Mode is what becomes of a request that a rule finds. The words are those of a limit's
// mode.
type Mode uint8

// The modes.
const (
	// Default is what the field that has it says.
	Default Mode = iota
	// Off: the rule is not looked at.
	Off
	// Shadow: the request passes and the finding is there to be counted: it says what would
	// have been refused.
	Shadow
	// Warn: as Shadow, and the client is told.
	Warn
	// Enforce: the request is refused.
	Enforce
)

var modes = [...]string{Default: "default", Off: "off", Shadow: "shadow", Warn: "warn", Enforce: "enforce"}

// String is the mode's word.
func (m Mode) String() string {
	if int(m) >= len(modes) {
		return fmt.Sprintf("mode %d", m)
	}
	return modes[m]
}

// UnmarshalText reads off, shadow, warn or enforce. The empty text is Default.
func (m *Mode) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*m = Default
		return nil
	}
	for i, word := range modes {
		if Mode(i) != Default && word == string(text) {
			*m = Mode(i)
			return nil
		}
	}
	return fmt.Errorf("%.32q is not off, shadow, warn or enforce", text)
}

// or is the mode, or another one where it is Default.
func (m Mode) or(other Mode) Mode {
	if m == Default {
		return other
	}
	return m
}

// problem is what is wrong with the mode of a rule; least is the weakest it may have.
func (m Mode) problem(least Mode) string {
	if m == Default || m >= least && m <= Enforce {
		return ""
	}
	return fmt.Sprintf("%s is not %s to %s", m, least, Enforce)
}
