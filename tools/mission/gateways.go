package main

// atGateways are the mechanisms of rows that gateways settle, in the order of the rows.
var atGateways = []mechanism{
	{
		row: "S1-03", file: "client/gateway/charge/desk.go", tests: "client/gateway/charge",
		pattern: "TestStormAsksNobody",
		text:    "if !v.Admit && !v.Ask {", without: "if !v.Admit && !v.Ask && w.Class == \"none\" {",
	},
	{
		row: "S1-14", file: "client/gateway/who/identify.go", tests: "client/gateway/who",
		text: "rule = NoCredential\n", without: "rule, speaker = NoCredential, &l.stranger\n",
	},
	{
		row: "S1-23", file: "client/gateway/lead.go", tests: "client/gateway", pattern: "TestStorm/S1-23",
		text:    "return nil, &refusedError{refusal: no, cause: fallback.DeniedIf(no.Passes())}",
		without: "_ = no.Passes()\n\t\treturn nil, nil",
	},
	{
		row: "S1-24", file: "client/gateway/refuse/hint.go", tests: "client/gateway/refuse",
		text: "wait = BudgetWait", without: "wait = unknownWait",
	},
	{
		row: "S1-25", file: "client/gateway/refuse/http.go", tests: "client/gateway/refuse",
		text: "case row.hint == minute:", without: "case row.hint == minute || r.Reason == Rate:",
	},
	{
		row: "S1-26", file: "client/gateway/who/identify.go", tests: "client/gateway/who",
		text: "case who == nil || !speaker.speaksFor(who):", without: "case who == nil:",
	},
	{
		row: "S1-27", file: "client/gateway/attempt/marker.go", tests: "client/gateway/attempt",
		text: "value-uint64(m.First) > RetriesMax", without: "value-uint64(m.First) > 1<<31",
	},
	{
		row: "S1-30", file: "client/gateway/charge/desk.go", tests: "client/gateway/charge",
		pattern: "TestRetryBudgets/S1-30",
		text:    "if !v.Admit && !v.Ask {", without: "if !v.Admit && !v.Ask && w.Class == \"none\" {",
	},
	{
		row: "S1-43", file: "client/httpwrap/transport.go", tests: "client/gateway", pattern: "TestAWrappedClient/S1-43",
		text: "case n+1 >= t.config.Attempts ||", without: "case",
	},
	{
		row: "S1-44", file: "client/gateway/who/identify.go", tests: "client/gateway/who",
		text: "if mode == Enforce {", without: "if mode == Enforce && rule != NoCredential && rule != NoName {",
	},
	{
		row: "S1-45", file: "client/httpwrap/transport.go", tests: "bench/languages", pattern: "TestSanctionedPaths/S1-45",
		text: "try.Header.Set(Marker, strconv.Itoa(before+n))", without: "try.Header.Set(Marker, strconv.Itoa(before+0*n))",
	},
	{
		row: "S1-46", file: "client/gateway/who/identify.go", tests: "client/gateway/who",
		text: "l.finds(NoMarker, who.unmarked, markerHeader)", without: "l.finds(NoMarker, Warn, markerHeader)",
	},
	{
		row: "S2-04", file: "client/gateway/fallback/manner.go", tests: "client/gateway/fallback",
		pattern: "TestRule/S2-04",
		text:    "other < t.Wait+own", without: "other < t.Wait+2*own",
	},
	{
		row: "S2-10", file: "client/gateway/circuit/board.go", tests: "client/gateway/circuit",
		text: "wait += min(", without: "wait += 0 * min(",
	},
	{
		row: "S2-11", file: "client/gateway/coalesce/group.go", tests: "client/gateway/coalesce",
		text: "if c := g.mu.byKey[key]; c != nil {", without: "if c := g.mu.byKey[key]; c != nil && c.key != key {",
	},
	{
		row: "S2-12", file: "client/gateway/coalesce/group.go", tests: "client/gateway",
		pattern: "TestCoalesced/S2-11_S2-12",
		text:    "if c := g.mu.byKey[key]; c != nil {", without: "if c := g.mu.byKey[key]; c != nil && c.key != key {",
	},
	{
		row: "S2-13", file: "client/gateway/canon/value.go", tests: "client/gateway/canon",
		text: "slices.SortStableFunc(list, byName)", without: "_ = list",
	},
	{
		row: "S2-14", file: "client/gateway/circuit/outcome.go", tests: "client/gateway/circuit",
		text: "t.call.throttled >= most", without: "t.call.throttled > most",
	},
	{
		row: "S2-15", file: "client/gateway/lead.go", tests: "client/gateway", pattern: "TestWaits/S2-15",
		text: "if v.Action != circuit.Defer {", without: "if v.Action != circuit.Forward {",
	},
	{
		row: "S2-16", file: "client/gateway/circuit/call.go", tests: "client/gateway/circuit",
		text: "{Tenant: tenant, Deployment: deployment}, {", without: "{Deployment: deployment}, {",
	},
	{
		row: "S2-17", file: "client/gateway/circuit/circuit.go", tests: "client/gateway/circuit",
		text: "return c.until - now, false", without: "return soon, false",
	},
	{
		row: "S2-19", file: "client/gateway/lead.go", tests: "client/gateway", pattern: "TestRetries/S2-19",
		text: "case now.tries == c.set.Tries ||", without: "case now.tries == 9*c.set.Tries ||",
	},
	{
		row: "S2-20", file: "client/gateway/forward.go", tests: "client/gateway", pattern: "TestPauses/S2-20",
		text: "Manner.Pause(s.call.set.Pauses, v.Wait,", without: "Manner.Pause(provider.Schedule{}, v.Wait,",
	},
	{
		row: "S2-21", file: "client/gateway/circuit/outcome.go", tests: "client/gateway/circuit",
		text: "failed := o == failure(t.call.keys[i])", without: "failed := o != Succeeded",
	},
	{
		row: "S2-22", file: "client/gateway/forward.go", tests: "client/gateway", pattern: "TestStreams/S2-22",
		text: "request.WithContext(ctx)", without: "request.WithContext(context.WithoutCancel(ctx))",
	},
	{
		row: "S2-24", file: "client/gateway/circuit/call.go", tests: "client/gateway", pattern: "TestWaits/S2-24",
		text:    "v := c.lookLocked(now)\n\tif v.Action != Forward {\n\t\tb.refusedLocked(v)",
		without: "v := Verdict{}\n\tif v.Action != Forward {\n\t\tb.refusedLocked(v)",
	},
	{
		// The charge of the next try is taken before the pause.
		row: "S2-25", file: "client/gateway/lead.go", tests: "client/gateway", pattern: "TestWaits/S2-25",
		text: "if !lately.Pause(ctx, next.after) {",
		without: "if held, err := c.charge(ctx, &now); err == nil {\n\t\t\tdefer held.Release()\n\t\t}\n" +
			"\t\tif !lately.Pause(ctx, next.after) {",
	},
	{
		row: "S2-26", file: "client/gateway/told/prober.go", tests: "client/gateway/told", pattern: "TestOneProbe/S2-26_of",
		text: "p.wantLocked(key)\n\treturn false\n}", without: "p.wantLocked(key)\n\treturn true\n}",
	},
	{
		row: "S2-28", file: "client/gateway/fallback/manner.go", tests: "client/gateway",
		pattern: "TestFallbacks/S2-28",
		text:    "t.Refusals < 2", without: "t.Refusals < 1",
	},
	{
		row: "S2-30", file: "client/gateway/gatewayprom/parts.go", tests: "client/gateway/gatewayprom",
		text: "s.Shared.Duplicates + s.Repeated", without: "s.Shared.Duplicates",
	},
	{
		row: "S2-33", file: "client/gateway/fallback/manner.go", tests: "client/gateway/fallback",
		pattern: "TestManners/S2-33",
		text:    "return max(w.For, delay)", without: "return s.Pause(w, retries, draw)",
	},
	{
		row: "S3-11", file: "client/gateway/keyed.go", tests: "client/gateway", pattern: "TestKeys/S3-11",
		text: "c.replay(w, &answer)", without: "_ = answer\n\t\treturn true",
	},
	{
		row: "S3-18", file: "client/gateway/lead.go", tests: "client/gateway/gatewayprom",
		text: "c.patience <= next.after ||", without: "",
	},
	{
		row: "S3-23", file: "client/gateway/provider/pause.go", tests: "client/gateway/provider",
		text: "return w.For + time", without: "return w.For + 0*time",
	},
	{
		row: "S3-28", file: "client/gateway/serve.go", tests: "client/gateway", pattern: "TestRetries/S3-28",
		text: `advice != "" && c.shadow`, without: `advice == "never" && c.shadow`,
	},
	{
		row: "S3-30", file: "client/gateway/provider/pause.go", tests: "client/gateway/provider",
		text: "longest = min(2*longest, pauseMax)", without: "longest = min(longest, pauseMax)",
	},
	{
		row: "S3-32", file: "client/gateway/keyed.go", tests: "client/gateway", pattern: "TestKeys/S3-32",
		text: "c.replay(w, &answer)", without: "_ = answer\n\t\treturn true",
	},
	{
		row: "S3-38", file: "embedded/embedded.go", tests: "embedded", pattern: "TestOneProcess/S3-38",
		text: "a.config.ID, a.config.Dir, 1,", without: "a.config.ID, a.config.Dir+time.Now().Format(\"/05.000000000\"), 1,",
	},
	{
		row: "S3-43", file: "client/gateway/charge/desk.go", tests: "client/gateway/charge",
		pattern: "TestCallsAreCountedOnce/S3-43",
		text:    "if !w.Again {", without: "if w.Client != \"\" {",
	},
	{
		row: "S3-46", file: "client/gateway/lead.go", tests: "client/gateway", pattern: "TestRetries/S3-46",
		text: "Attempt: c.attempt.Ceiling,", without: "Attempt: c.attempt.Attempt,",
	},
}
