package provider

import "slices"

// What is true of every provider, and of all that speak as OpenAI does.

// general ends every table: what a status means that no row says more about.
var general = []Signal{
	{Status: []int{413}, Class: TooLarge, Seen: documented("RFC 9110, 15.5.14")},
	{Status: []int{503, 529}, Class: Overload, Seen: documented("RFC 9110, 15.6.4; 529: Anthropic API, errors")},
	{Status: []int{429}, Class: Transient, Seen: documented("RFC 6585, 4")},
}

// spent are the codes of money that is used up, which mean nothing else.
var spent = []Signal{
	{
		Code:  []string{"project_spend_limit_exceeded"},
		Class: HardQuota, Scope: Project, Seen: documented("help.openai.com 6614457").afresh(),
	},
	{
		Code: []string{
			"organization_spend_limit_exceeded", "organization_usage_limit_exceeded", "credit_balance_exhausted",
		},
		Class: HardQuota, Scope: Organization, Seen: documented("help.openai.com 5955604, 6614457").afresh(),
	},
	{
		Code:  []string{"billing_hard_limit_reached"},
		Class: HardQuota, Scope: Organization, Seen: documented("help.openai.com 5955604"),
	},
}

// insufficient is the code that means money, except where the wait is that of a
// limit of a minute: then it is one.
var insufficient = []Signal{
	{
		Status: []int{429}, Code: []string{"insufficient_quota"}, When: HintIsShort,
		Class: Transient, Seen: quoted("promptfoo/promptfoo, 10866"),
	},
	{
		Code: []string{"insufficient_quota"}, Class: HardQuota, Scope: Organization,
		Seen: documented("help.openai.com 5955604; learn.microsoft.com dev-proxy openai-insufficient-quota").afresh(),
	},
}

// busy are the codes of a provider that has trouble of its own, or is asked for
// more and more.
var busy = []Signal{
	{
		Code: []string{"slow_down"}, Class: Acceleration,
		Seen: quoted("developersdigest.tech, openai-api 429-slow-down"),
	},
	{
		Code: []string{"server_is_overloaded", "service_unavailable_error", "overloaded_error"}, Class: Overload,
		Scope: Everybody, Seen: documented("learn.microsoft.com dev-proxy; anthropic-sdk-python _client.py"),
	},
}

// long is a limit of hours or days, whoever has it.
var long = Signal{
	Status: []int{429}, When: HintIsLong, Class: LongWindow,
	Seen: quoted("Yeachan-Heo/gajae-code, 2444: waits of hours"),
}

// rates are the codes of a limit that gives more by itself.
var rates = []Signal{
	long,
	{
		Status: []int{429}, Code: []string{"rate_limit_exceeded", "rate_limit_error"}, Class: Transient,
		Seen: documented("learn.microsoft.com dev-proxy openai-rate-limit-reached; help.openai.com 5955604"),
	},
}

// tooLarge is what is larger than a limit ever gives.
var tooLarge = []Signal{{
	Status: []int{429, 413}, When: NeverFits, Class: TooLarge,
	Seen: recorded("DrShushen/climb, 13: more requested than the limit; Groq: a full limit and x-should-retry: false").
		afresh(),
}}

// signals is a table's own rows and those that it shares.
func signals(lists ...[]Signal) []Signal { return slices.Concat(append(lists, general)...) }

// xRateLimit are OpenAI's names of headers for what it calls so.
func xRateLimit(what, dimension string, short bool, seen Seen) Header {
	const prefix = "X-Ratelimit-"
	return Header{
		Dimension: dimension, Limit: prefix + "Limit-" + what, Remaining: prefix + "Remaining-" + what,
		Reset: prefix + "Reset-" + what, Short: short, Seen: seen,
	}
}
