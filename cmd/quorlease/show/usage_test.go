package show

import (
	"bytes"
	"encoding/csv"
	"testing"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// TestNamesAreNoFormulas: what a client calls itself is a text in every cell of a
// spreadsheet, on one row of its own.
func TestNamesAreNoFormulas(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "", "chat": "chat", "a=b": "a=b", `a,"b`: `a,"b`, "'q": "'q", "é": "é", "(other)": "(other)",
		"=cmd|'/C calc'!A0": "'=cmd|'/C calc'!A0", "+1": "'+1", "-2+3": "'-2+3", "-": "'-", "@SUM(A1)": "'@SUM(A1)",
		"＝1+1": "'＝1+1",
	} {
		var out bytes.Buffer
		rows := []*quorleasev1.UsageRow{{Name: name, Limit: "llm"}}
		UsageCSV(&out, "client", &quorleasev1.UsageBookQueryResponse{Rows: rows})
		read, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(read) != 2 || read[1][0] != want || read[1][1] != "llm" {
			t.Errorf("%q: %q, %v; want %q", name, read, err, want)
		}
	}
}
