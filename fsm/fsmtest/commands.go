package fsmtest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// commands are what a script can say. Charges are LIMIT[/KEY]:DIMENSION=AMOUNT,
// usages the same or DIMENSION=USED; everything else is word=value or a bare
// word.
//
//	tick
//	apply [revision=N] [prune] [author=A]     with lines: limit …, budget …, delete NAME
//	plan  …                                   as apply, without effect
//	acquire [id=X] [track] [class=C] [client=C] [owner=O] [times=N] [held=D] [revision=N] [content=N]
//	        [session=S] [connection=N] CHARGE[,keep=N][,escrow=NODE.BOOT.SEQUENCE] …
//	peek [class=C] CHARGE …
//	settle id=X [progress] [owner=O] USAGE …
//	release id=X [owner=O]
//	renew id=X ttl=D seq=N [owner=O] [session=S] [connection=N] USAGE …
//	end session=S [owner=O] [connection=N] [grace=D] [resumed]
//	wall D                                    from now on the wall clock is ahead of authority time by D
//	roll LIMIT starts=D ends=D
//	entry                                     with lines: operations, all in one entry
//	adjust LIMIT[/KEY]:DIMENSION=±N|reset [reason=R]
//	report node=N boot=N client=C slice=N total=N retries=N
//	admitted session=X [client=C] [owner=O] LIMIT[/KEY]:DIMENSION[@CLASS]=TOTAL …
//	feedback LIMIT[/KEY] KIND [wait=D] [left=DIMENSION:N] … [reason=R] [client=C]
//	clear LIMIT[/KEY] reason=R [author=A]
//	ask id=NODE.BOOT.SEQUENCE [class=C] CHARGE
//	return NODE.BOOT.SEQUENCE=UNSPENT …
//	held NODE.BOOT
//	client NAME
//	node ID [remove] [grpc=A], form ID [keys=N] [leases=N] [limits=N] [clients=N]
//	inspect LIMIT[/KEY]
//	counts, history
//	restore                                   go on with a machine restored from a snapshot
func commands() map[string]command {
	all := map[string]command{
		"tick":    func(s *script, _, _ []string) []string { s.At(s.now); return nil },
		"wall":    func(s *script, words, _ []string) []string { s.Ahead = s.duration(words[0]); return nil },
		"apply":   (*script).apply,
		"plan":    (*script).plan,
		"acquire": (*script).acquire,
		"peek":    (*script).peek,
		"entry":   (*script).entry,
		"client":  (*script).client,
		"inspect": (*script).inspect,
		"counts":  (*script).counts,
		"history": (*script).history,
		"restore": (*script).restore,
		"held":    (*script).held,
	}
	for _, name := range []string{
		"settle", "release", "renew", "adjust", "report", "admitted", "feedback", "clear", "node", "form",
		"end", "roll", "ask", "return",
	} {
		all[name] = func(s *script, words, _ []string) []string {
			return show(s.At(s.now, s.operation(name, words)))
		}
	}
	return all
}

// command runs one command and returns the lines to show.
type command func(s *script, words, input []string) []string

// options are the words of a command.
type options struct {
	values map[string]string
	flags  map[string]bool
	rest   []string
}

// parseWords takes words of the form key=value, where key is one of keys, and
// bare words that are one of keys; the others are left.
func parseWords(words []string, keys ...string) options {
	o := options{values: make(map[string]string), flags: make(map[string]bool)}
	known := make(map[string]bool)
	for _, key := range keys {
		known[key] = true
	}
	for _, word := range words {
		key, value, found := strings.Cut(word, "=")
		switch {
		case found && known[key]:
			o.values[key] = value
		case !found && known[word]:
			o.flags[word] = true
		default:
			o.rest = append(o.rest, word)
		}
	}
	return o
}

func (s *script) number(text string) int64 {
	s.T.Helper()
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.T.Fatalf("%s: %q: %v", s.file, text, err)
	}
	return n
}

func (s *script) duration(text string) time.Duration {
	s.T.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		s.T.Fatalf("%s: %q: %v", s.file, text, err)
	}
	return d
}

// charge reads LIMIT[/KEY]:DIMENSION=AMOUNT; without a colon only dimension and
// amount are there.
func (s *script) charge(word string) *logv1.Charge {
	s.T.Helper()
	name, amount, _ := strings.Cut(word, "=")
	if i := strings.LastIndex(word, "="); i >= 0 {
		name, amount = word[:i], word[i+1:]
	}
	c := &logv1.Charge{}
	if i := strings.LastIndex(name, ":"); i >= 0 {
		c.Limit, c.Key, _ = strings.Cut(name[:i], "/")
		name = name[i+1:]
	}
	c.Dimension = name
	if amount != "reset" {
		c.Amount = s.number(strings.TrimPrefix(amount, "+"))
	}
	return c
}

// acquired is the acquire that the words describe.
func (s *script) acquired(words []string) (op *logv1.Acquire, times int64) {
	s.T.Helper()
	o := parseWords(words, "id", "track", "class", "client", "owner", "times", "held", "revision", "content",
		"session", "connection")
	op = &logv1.Acquire{
		LeaseId: LeaseID(o.values["id"]), Track: o.flags["track"], Class: o.values["class"],
		Client: o.values["client"], Owner: o.values["owner"],
	}
	if text := o.values["held"]; text != "" {
		op.Held = int64(s.duration(text))
	}
	if text, given := o.values["revision"]; given {
		revision := uint64(s.number(text))
		op.Revision = &revision
	}
	op.Content, op.Connection = uint64(s.number(o.values["content"])), uint64(s.number(o.values["connection"]))
	if text := o.values["session"]; text != "" {
		op.Session = LeaseID(text)
	}
	for _, word := range o.rest {
		word, escrow, paid := strings.Cut(word, ",escrow=")
		word, keep, _ := strings.Cut(word, ",keep=")
		c := s.charge(word)
		c.Keep = s.number(keep)
		if paid {
			c.Escrow = s.escrowID(escrow)
		}
		op.Charges = append(op.Charges, c)
	}
	return op, max(1, s.number(o.values["times"]))
}

func (s *script) acquire(words, _ []string) []string {
	s.T.Helper()
	op, times := s.acquired(words)
	granted := 0
	var lines []string
	for range times {
		results := s.At(s.now, Operation(op))
		if results[0].GetAcquire().GetGranted() {
			granted++
		}
		lines = show(results)
	}
	if times > 1 {
		return append([]string{fmt.Sprintf("%d granted, %d denied, the last:", granted, times-int64(granted))}, lines...)
	}
	return lines
}

func (s *script) peek(words, _ []string) []string {
	s.T.Helper()
	op, _ := s.acquired(words)
	answer, err := s.Peek(bucket.Instant(s.now), op)
	if err != nil {
		return []string{"refused " + err.Error()}
	}
	return []string{showAcquire(answer)}
}

func (s *script) entry(_, input []string) []string {
	s.T.Helper()
	var operations []*logv1.Operation
	for _, line := range input {
		words := strings.Fields(line)
		operations = append(operations, s.operation(words[0], words[1:]))
	}
	return show(s.At(s.now, operations...))
}

func (s *script) restore(_, _ []string) []string {
	s.T.Helper()
	s.Machine = Restored(s.T, s.Machine)
	return nil
}

func (s *script) counts(_, _ []string) []string {
	c := s.Counts()
	line := fmt.Sprintf("keys %d, leases %d of which open %d, limits %d, clients %d",
		c.Keys, c.Leases, c.OpenLeases, c.Limits, c.Clients)
	if c.Reports > 0 {
		line += fmt.Sprintf(", reports %d", c.Reports)
	}
	return []string{line}
}

func (s *script) client(words, _ []string) []string {
	total, retries := s.ClientCounts(bucket.Instant(s.now), words[0])
	line := fmt.Sprintf("%d requests, %d retries", total, retries)
	budget := s.BudgetFor(words[0])
	if budget == nil {
		return []string{line + ", no retry budget"}
	}
	left := fsm.RuleOf(budget).Headroom(total, retries)
	return []string{fmt.Sprintf("%s, %s lets %d more through", line, budget.GetName(), left)}
}

func (s *script) history(_, _ []string) []string {
	var lines []string
	for _, r := range s.History(0) {
		lines = append(lines, fmt.Sprintf("%d at %v by %q: %s",
			r.Revision, time.Duration(r.Now), r.Author, showChanges(r.Changes)))
	}
	return lines
}

func (s *script) inspect(words, _ []string) []string {
	s.T.Helper()
	limit, key, _ := strings.Cut(words[0], "/")
	if _, err := s.Inspect(bucket.Instant(s.now), limit, key); err != nil {
		return []string{"refused " + err.Error()}
	}
	s.CheckKey(limit, key)
	in, _ := s.Inspect(bucket.Instant(s.now), limit, key)
	return showInspection(in)
}
