package fsmtest

import (
	"strconv"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// operation is the operation that a line of a script describes.
func (s *script) operation(name string, words []string) *logv1.Operation {
	s.T.Helper()
	o := parseWords(words, "id", "progress", "owner", "client", "ttl", "seq", "reason", "author", "node", "boot",
		"slice", "total", "retries", "remove", "grpc", "keys", "leases", "limits", "clients", "session",
		"connection", "grace", "resumed", "starts", "ends")
	id := LeaseID(o.values["id"])
	switch name {
	case "acquire":
		op, _ := s.acquired(words)
		return Operation(op)
	case "settle":
		return Operation(&logv1.Settle{
			LeaseId: id, Owner: o.values["owner"], Used: s.usages(o.rest), Progress: o.flags["progress"],
		})
	case "release":
		return Operation(&logv1.Release{LeaseId: id, Owner: o.values["owner"], Client: o.values["client"]})
	case "renew":
		return Operation(&logv1.Renew{
			LeaseId: id, Owner: o.values["owner"], Ttl: int64(s.duration(o.values["ttl"])),
			Sequence: uint64(s.number(o.values["seq"])), Used: s.usages(o.rest),
			Session: s.session(o), Connection: uint64(s.number(o.values["connection"])),
		})
	case "end":
		return Operation(&logv1.EndSession{
			Session: s.session(o), Owner: o.values["owner"], Connection: uint64(s.number(o.values["connection"])),
			Grace: int64(s.optional(o.values["grace"])), Resumed: o.flags["resumed"],
		})
	case "roll":
		return Operation(&logv1.RollWindow{
			Limit: o.rest[0], Starts: int64(s.duration(o.values["starts"])), Ends: int64(s.duration(o.values["ends"])),
		})
	case "adjust":
		return Operation(s.adjustment(o))
	case "report":
		return Operation(&logv1.ReportRetries{
			Node: o.values["node"], Boot: uint64(s.number(o.values["boot"])),
			Slices: []*logv1.ClientSlice{{
				Client: o.values["client"], Slice: s.number(o.values["slice"]),
				Total: s.number(o.values["total"]), Retries: s.number(o.values["retries"]),
			}},
		})
	case "admitted":
		return Operation(&logv1.ReportAdmitted{
			Session: LeaseID(o.values["session"]), Owner: o.values["owner"], Client: o.values["client"],
			Counts: s.counted(o.rest),
		})
	case "feedback":
		return s.feedback(words)
	case "ask", "return":
		return s.asking(name, words)
	case "clear":
		return s.clearing(words)
	case "node":
		return Operation(&logv1.SetNode{
			Node: &logv1.NodeRecord{RaftId: o.rest[0], Grpc: o.values["grpc"]}, Remove: o.flags["remove"],
		})
	case "form":
		return Operation(&logv1.Form{ClusterId: o.rest[0], Caps: &logv1.Caps{
			Keys: s.number(o.values["keys"]), Leases: s.number(o.values["leases"]),
			Limits: s.number(o.values["limits"]), Clients: s.number(o.values["clients"]),
		}})
	}
	s.T.Fatalf("%s: %q is no operation", s.file, name)
	return nil
}

func (s *script) session(o options) []byte {
	if o.values["session"] == "" {
		return nil
	}
	return LeaseID(o.values["session"])
}

func (s *script) optional(text string) time.Duration {
	s.T.Helper()
	if text == "" {
		return 0
	}
	return s.duration(text)
}

func (s *script) usages(words []string) []*logv1.Usage {
	s.T.Helper()
	var usages []*logv1.Usage
	for _, word := range words {
		c := s.charge(word)
		usages = append(usages, &logv1.Usage{
			Limit: c.GetLimit(), Key: c.GetKey(), Dimension: c.GetDimension(), Used: c.GetAmount(),
		})
	}
	return usages
}

func (s *script) counted(words []string) []*logv1.AdmittedCount {
	s.T.Helper()
	var counts []*logv1.AdmittedCount
	for _, word := range words {
		c := s.charge(word)
		count := &logv1.AdmittedCount{Limit: c.GetLimit(), Key: c.GetKey(), Tokens: c.GetAmount()}
		count.Dimension, count.Class, _ = strings.Cut(c.GetDimension(), "@")
		counts = append(counts, count)
	}
	return counts
}

func (s *script) adjustment(o options) *logv1.Adjust {
	s.T.Helper()
	c := s.charge(o.rest[0])
	op := &logv1.Adjust{
		Limit: c.GetLimit(), Key: c.GetKey(), Dimension: c.GetDimension(),
		Reason: o.values["reason"], Author: o.values["author"],
	}
	op.Change = &logv1.Adjust_Add{Add: c.GetAmount()}
	if strings.HasSuffix(o.rest[0], "=reset") {
		op.Change = &logv1.Adjust_Reset_{Reset_: true}
	}
	return op
}

// changes is the ApplyLimits that the lines describe.
func (s *script) changes(words, input []string) *logv1.ApplyLimits {
	s.T.Helper()
	o := parseWords(words, "revision", "prune", "author")
	op := &logv1.ApplyLimits{Prune: o.flags["prune"], Author: o.values["author"]}
	if text, given := o.values["revision"]; given {
		revision := uint64(s.number(text))
		op.ExpectedRevision = &revision
	}
	for _, line := range input {
		words := strings.Fields(line)
		switch words[0] {
		case "limit":
			op.Limits = append(op.Limits, s.limit(words[1], words[2:]))
		case "budget":
			op.RetryBudgets = append(op.RetryBudgets, s.budget(words[1], words[2:]))
		case "delete":
			op.Delete = append(op.Delete, words[1])
		case "delete-budget":
			op.DeleteRetryBudgets = append(op.DeleteRetryBudgets, words[1])
		default:
			s.T.Fatalf("%s: %q is no change", s.file, line)
		}
	}
	return op
}

func (s *script) apply(words, input []string) []string {
	s.T.Helper()
	return show(s.At(s.now, Operation(s.changes(words, input))))
}

func (s *script) plan(words, input []string) []string {
	s.T.Helper()
	answer, err := s.PlanLimits(s.changes(words, input))
	if err != nil {
		return []string{"refused " + err.Error()}
	}
	return []string{showLimits(answer)}
}

// limit reads NAME [keyed] [unlimited] [target=N%] [lease=D] [max_keys=N] [loss=open|share|closed] [fallback=N%]
// [ramp=D] [adaptive=DECREASE%:STEP%:INTERVAL:FLOOR%]
// [kind=concurrency|quota] [mode=off|shadow|warn] [period=hour|day|month] [warn=N%,N%] [max_keys_per_client=N]
// [escrow=D] [exact]
// [class=NAME:SHARE%:BURST%] … [override=VALUE[*]:AMOUNT/INTERVAL,burst=N] …
// DIMENSION=RATE,burst=N[,debt=N][,open=N] … .
func (s *script) limit(name string, words []string) *logv1.Limit {
	s.T.Helper()
	o := parseWords(words, append(recovering(),
		"keyed", "unlimited", "target", "lease", "max_keys", "loss", "fallback",
		"kind", "mode", "period", "warn", "max_keys_per_client", "escrow", "exact")...)
	limit := Limit(name)
	s.model(limit, o)
	if text := o.values["loss"]; text != "" {
		limit.OnQuorumLoss = logv1.OnQuorumLoss(logv1.OnQuorumLoss_value["ON_QUORUM_LOSS_"+strings.ToUpper(text)])
	}
	if text := o.values["fallback"]; text != "" {
		share := s.percent(text)
		limit.FallbackShare = &share
	}
	s.recovery(limit, o)
	limit.Keyed, limit.Unlimited = o.flags["keyed"], o.flags["unlimited"]
	if text := o.values["target"]; text != "" {
		limit.Target = s.percent(text)
	}
	if text := o.values["lease"]; text != "" {
		limit.Lease = int64(s.duration(text))
	}
	if text := o.values["max_keys"]; text != "" {
		limit.MaxKeys = s.number(text)
	}
	for _, word := range o.rest {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "class":
		case "override":
			limit.Overrides = append(limit.Overrides, s.override(limit, value))
			continue
		default:
			limit.Dimensions = append(limit.Dimensions, s.counting(limit, name, value))
			continue
		}
		parts := strings.Split(value, ":")
		limit.Classes = append(limit.Classes, &logv1.Class{
			Name: parts[0], Share: s.percent(parts[1]), Burst: s.percent(parts[2]),
		})
	}
	return limit
}

func (s *script) dimension(name, value string) *logv1.Dimension {
	s.T.Helper()
	parts := strings.Split(value, ",")
	o := parseWords(parts[1:], "burst", "debt", "open")
	d := Dimension(s.T, name, parts[0], s.number(o.values["burst"]))
	if text, given := o.values["debt"]; given {
		d.MaxDebt = s.number(text)
	}
	if text, given := o.values["open"]; given {
		d.MaxOpen = s.number(text)
	}
	return d
}

// percent reads "12%" or "12.34%" in hundredths of a percent.
func (s *script) percent(text string) int64 {
	s.T.Helper()
	whole, part, _ := strings.Cut(strings.TrimSuffix(text, "%"), ".")
	part = (part + "00")[:2]
	n, err := strconv.ParseInt(whole+part, 10, 64)
	if err != nil {
		s.T.Fatalf("%s: %q: %v", s.file, text, err)
	}
	return n
}

// budget reads NAME client=C [max_retries=N] [max_fraction=N%] [window=D]
// [min_requests=N] [retry_after=D] .
func (s *script) budget(name string, words []string) *logv1.RetryBudget {
	s.T.Helper()
	o := parseWords(words, "client", "max_retries", "max_fraction", "window", "min_requests", "retry_after")
	given := func(key, otherwise string) string {
		if text, there := o.values[key]; there {
			return text
		}
		return otherwise
	}
	return &logv1.RetryBudget{
		Name: name, Client: o.values["client"], MaxRetries: uint32(s.number(given("max_retries", "3"))),
		MaxFraction: s.percent(given("max_fraction", "20%")), Window: int64(s.duration(given("window", "5m"))),
		MinRequests: s.number(given("min_requests", "50")), RetryAfter: int64(s.duration(given("retry_after", "60s"))),
	}
}
