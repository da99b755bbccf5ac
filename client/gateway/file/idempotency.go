package file

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	"github.com/quorlease/quorlease/client/gateway/replay"
)

const (
	keptMax    = 30 * 24 * time.Hour
	replaysMin = 4 << 20
	answerMin  = 1 << 10
	// answerPart is which part of all bytes one answer may have.
	answerPart = 4
)

// idempotency reads which answers are kept for whoever comes again with a key, and who needs one.
func (r *reader) idempotency(n ast.Node, f *File) {
	if n == nil {
		return
	}
	const at = "idempotency"
	fields := r.Fields(n, at, "required", "keep", "bytes", "answer_max")
	c := &f.Gateway.Replays
	c.Required = r.texts(fields["required"], at+".required", replay.RequiredMax, replay.PathProblem)
	c.Keep = r.kept(fields["keep"], at+".keep")
	c.Bytes = r.bytes(fields["bytes"], at+".bytes", replaysMin, heldMax)
	c.AnswerMax = r.bytes(fields["answer_max"], at+".answer_max", answerMin, heldMax/answerPart)
	if most := c.Bytes / answerPart; most != 0 && c.AnswerMax > most {
		r.Fail(at+".answer_max", "%s is more than a quarter of bytes, %s", formatBytes(c.AnswerMax), formatBytes(most))
	}
}

// kept reads for how long answers are kept; none and 0s are -1, which is not at all.
func (r *reader) kept(n ast.Node, path string) time.Duration {
	if n == nil {
		return 0
	}
	keep, ok := strict.Value(r.Reader, n, path, "a duration or none", orNone(written.ParseDuration))
	switch {
	case ok && keep == 0:
		return -1
	case keep > 0 && keep < time.Second || keep > keptMax:
		r.FailNode(n, path, "%s is out of range 1s..%s, or none",
			written.FormatDuration(keep), written.FormatDuration(keptMax))
	}
	return keep
}
