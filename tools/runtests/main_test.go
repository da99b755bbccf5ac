package main

import (
	"strings"
	"testing"
)

// TestReport reads what "go test -json" prints of a run with a pass, a failure,
// a skip, a build that failed and a crash.
func TestReport(t *testing.T) {
	const events = `{"Action":"run","Package":"q/a","Test":"TestGood"}
{"Action":"output","Package":"q/a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"q/a","Test":"TestGood","Output":"    a_test.go:3: chatter\n"}
{"Action":"pass","Package":"q/a","Test":"TestGood","Elapsed":0}
{"Action":"output","Package":"q/a","Test":"TestBad","Output":"    a_test.go:9: got 1, want 2\n"}
{"Action":"fail","Package":"q/a","Test":"TestBad","Elapsed":0}
{"Action":"output","Package":"q/a","Test":"TestAway","Output":"=== RUN   TestAway\n"}
{"Action":"output","Package":"q/a","Test":"TestAway","Output":"    a_test.go:7: needs promtool\n"}
{"Action":"output","Package":"q/a","Test":"TestAway","Output":"--- SKIP: TestAway (0.00s)\n"}
{"Action":"skip","Package":"q/a","Test":"TestAway","Elapsed":0}
{"Action":"fail","Package":"q/a","Elapsed":0.2}
{"ImportPath":"q/b","Action":"build-output","Output":"b.go:1: undefined: x\n"}
{"Action":"output","Package":"q/b","Output":"FAIL q/b [build failed]\n"}
{"Action":"fail","Package":"q/b","Elapsed":0}
{"Action":"output","Package":"q/c","Test":"TestCrash","Output":"panic: boom\n"}
{"Action":"fail","Package":"q/c","Elapsed":0}
{"Action":"output","Package":"q/d","Output":"?   \tq/d\t[no test files]\n"}
{"Action":"skip","Package":"q/d","Elapsed":0}
{"Action":"pass","Package":"q/e","Elapsed":1.25}
not json
`
	var out strings.Builder
	r := newReport(&out)
	r.readAll(strings.NewReader(events))
	r.summary()
	const want = `q/a: TestBad:
    a_test.go:9: got 1, want 2
SKIPPED q/a TestAway: a_test.go:7: needs promtool
b.go:1: undefined: x
FAIL q/b [build failed]
panic: boom
ok   q/e 1.2s
not json
1 passed, 1 failed, 1 skipped
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
