package exit

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	plain := errors.New("read limits: no such file")
	for _, row := range []struct {
		name     string
		err      error
		wantCode int
		want     string
	}{
		{"nothing", nil, Yes, ""},
		{"error", plain, Failed, "quorlease: read limits: no such file\n"},
		{"usage", Usagef("--top %d is outside 1 to 9", 0), Usage, "quorlease: --top 0 is outside 1 to 9\n"},
		{"denied", ErrDenied, Denied, ""},
		{"wrapped", fmt.Errorf("apply: %w", Usagef("no")), Usage, "quorlease: apply: no\n"},
		{"joined", errors.Join(Usagef("one"), Usagef("two")), Usage, "quorlease: one\nquorlease: two\n"},
		{
			"joined within", &Error{Code: Protected, Err: errors.Join(plain, errors.Join(Usagef("b"), plain))}, Protected,
			"quorlease: read limits: no such file\nquorlease: b\nquorlease: read limits: no such file\n",
		},
		{"two causes in one sentence", fmt.Errorf("%w: %w", errors.New("a"), errors.New("b")), Failed, "quorlease: a: b\n"},
		{"many lines", errors.New("one:\n  two\r\n\nthree"), Failed, "quorlease: one:; two; three\n"},
		{
			"turned around", errors.New("key a\u202eb\u200b\U000e0001 ünï"), Failed,
			"quorlease: key a\\u202eb\\u200b\\U000e0001 ünï\n",
		},
		{"control characters", errors.New("key \x1b[31m"), Failed, "quorlease: key \\x1b[31m\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if got := Report(row.err, &out); got != row.wantCode || out.String() != row.want {
				t.Errorf("Report(%v) = %d, %q, want %d, %q", row.err, got, out.String(), row.wantCode, row.want)
			}
		})
	}
}
