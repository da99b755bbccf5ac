package fsmtest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
)

// EscrowID is the id of an ask.
func EscrowID(node string, boot, sequence uint64) *logv1.EscrowID {
	return &logv1.EscrowID{Node: node, Boot: boot, Sequence: sequence}
}

// Ask asks for escrow as a charge says, of a class.
func Ask(id *logv1.EscrowID, c *logv1.Charge, class string) *logv1.Operation {
	return Operation(&logv1.AskEscrow{
		Id: id, Limit: c.GetLimit(), Key: c.GetKey(), Dimension: c.GetDimension(), Class: class, Amount: c.GetAmount(),
	})
}

// Return gives back what was not spent of one id.
func Return(id *logv1.EscrowID, unspent int64) *logv1.Operation {
	return Operation(&logv1.ReturnEscrow{Returns: []*logv1.EscrowReturn{{Id: id, Unspent: unspent}}})
}

// escrowID reads NODE.BOOT.SEQUENCE.
func (s *script) escrowID(text string) *logv1.EscrowID {
	s.T.Helper()
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		s.T.Fatalf("%s: %q: must be NODE.BOOT.SEQUENCE", s.file, text)
	}
	return EscrowID(parts[0], uint64(s.number(parts[1])), uint64(s.number(parts[2])))
}

// asking is an operation of a node.
func (s *script) asking(name string, words []string) *logv1.Operation {
	s.T.Helper()
	if name == "ask" {
		o := parseWords(words, "id", "class")
		return Ask(s.escrowID(o.values["id"]), s.charge(o.rest[0]), o.values["class"])
	}
	op := &logv1.ReturnEscrow{}
	for _, word := range words {
		id, unspent, _ := strings.Cut(word, "=")
		op.Returns = append(op.Returns, &logv1.EscrowReturn{Id: s.escrowID(id), Unspent: s.number(unspent)})
	}
	return Operation(op)
}

// held shows what a process holds.
func (s *script) held(words, _ []string) []string {
	s.T.Helper()
	node, boot, _ := strings.Cut(words[0], ".")
	var lines []string
	for h := range s.Escrow().Held(node, uint64(s.number(boot))) {
		line := fmt.Sprintf("%d: %d of %d %s for %v",
			h.ID.Sequence, h.Left, h.Amount, place(h.Limit, h.Key, h.Dimension), h.Life)
		if h.Class != "" {
			line += " of class " + h.Class
		}
		if h.Void {
			line += ", void"
		}
		lines = append(lines, line)
	}
	return lines
}

func showEscrow(r *logv1.EscrowResult) string {
	word := strings.ToLower(strings.TrimPrefix(r.GetOutcome().String(), "OUTCOME_"))
	if r.GetOutcome() == logv1.EscrowResult_OUTCOME_GRANTED {
		word += fmt.Sprintf(" %d for %v", r.GetAmount(), time.Duration(r.GetLife()))
	}
	if r.GetRepeated() {
		word += " before"
	}
	if r.GetWait() > 0 {
		word += fmt.Sprintf(" wait %v", time.Duration(r.GetWait()))
	}
	return word
}

// showHeld is what an inspection says of escrow: nothing where there is none.
func showHeld(in *fsm.Inspection) []string {
	var lines []string
	for _, o := range in.Escrow {
		line := fmt.Sprintf("escrow %s of %s: %d in %d", o.Dimension, o.Node, o.Tokens, o.Records)
		if o.Class != "" {
			line += ", class " + o.Class
		}
		if o.Void > 0 {
			line += ", void " + strconv.FormatInt(o.Void, 10)
		}
		lines = append(lines, line)
	}
	return lines
}
