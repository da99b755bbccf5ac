package provider

import "time"

const anthropicSpend = "enforced_spend_limit_reached"

var anthropic = Table{
	Name: NameAnthropic,
	Signals: signals([]Signal{
		{
			Status: []int{429}, Code: []string{anthropicSpend}, Class: HardQuota, Scope: Organization,
			Seen: documented("platform.claude.com rate-limits"),
		},
		{
			// The same, from what has lost the code on its way.
			Status: []int{429}, Begins: []string{"you have reached your api usage limits"}, When: NoHint,
			Class: HardQuota, Scope: Organization, Seen: documented("platform.claude.com rate-limits"),
		},
		{
			Status: []int{400}, Begins: []string{"you have reached your specified workspace api usage limits"},
			Class: HardQuota, Scope: Workspace,
			Seen: quoted("developersdigest.tech anthropic-api 400-spend-limit-reached").afresh(),
		},
		{
			Status: []int{400}, Begins: []string{"you have reached your specified api usage limits"},
			Class: HardQuota, Scope: Organization, Seen: recorded("anthropics/claude-code, 1047 and 38035").afresh(),
		},
		{
			Status: []int{400},
			Begins: []string{"your credit balance is too low", "credit balance is too low"},
			Class:  HardQuota, Scope: Organization, Seen: quoted("a test of an incident of 2026-08-28"),
		},
		{
			Status: []int{402}, Code: []string{"billing_error"}, Class: HardQuota, Scope: Organization,
			Seen: quoted("developersdigest.tech anthropic-api").afresh(),
		},
		{
			Code: []string{"overloaded_error"}, Class: Overload, Scope: Everybody,
			Seen: source("anthropic-sdk-python _client.py; within streams: can1357/oh-my-pi, 11701"),
		},
		{
			Status: []int{413}, Code: []string{"request_too_large"}, Class: TooLarge,
			Seen: documented("platform.claude.com errors"),
		},
		{
			Status: []int{429}, Header: "Anthropic-Ratelimit-Unified-Status", Value: "rejected",
			Class: LongWindow, Seen: quoted("Yeachan-Heo/gajae-code, 2444"),
		},
		{
			Status: []int{429}, Says: []string{"acceleration limit"}, Class: Acceleration, Scope: Organization,
			Seen: documented("platform.claude.com rate-limits"),
		},
	}, rates),
	Headers: []Header{
		anthropicLimit("Requests", Requests, 0),
		anthropicLimit("Tokens", Tokens, 0),
		anthropicLimit("Input-Tokens", InputTokens, 1000),
		anthropicLimit("Output-Tokens", OutputTokens, 1000),
		anthropicPriority("Input-Tokens", "priority_input_tokens"),
		anthropicPriority("Output-Tokens", "priority_output_tokens"),
	},
	Counting: Counting{
		Counts: []Count{
			{Dimension: Requests, Estimate: One, Settle: Kept, Refill: Continuous, Window: time.Second},
			// What a cache has does not count, except of some models.
			{
				Dimension: InputTokens, Estimate: Prompt, Settle: Actual, Refill: Continuous,
				CacheReadPPM: 0, CacheWritePPM: Whole,
			},
			// Older pages count max_tokens first and correct that at the end: MaxOnly.
			{Dimension: OutputTokens, Estimate: AsProduced, Settle: Actual, Refill: Continuous, OutputPPM: Whole},
		},
		Seen: documented("platform.claude.com rate-limits"),
	},
	Routes: []Route{
		{"/v1/messages", Messages, InBody, AnthropicBody, false, anthropicPaths},
		{"/v1/complete", Completions, InBody, AnthropicBody, false, anthropicPaths},
	},
	Request: "Request-Id",
	Keys:    Keys{Seen: Seen{Documented, "anthropics/anthropic-sdk-typescript pull 1144, by a maintainer", keysSeen}},
}

var anthropicPaths = documented("platform.claude.com API reference")

func anthropicLimit(what, dimension string, rounded int64) Header {
	const prefix = "Anthropic-Ratelimit-"
	return Header{
		Dimension: dimension, Limit: prefix + what + "-Limit", Remaining: prefix + what + "-Remaining",
		Reset: prefix + what + "-Reset", Rounded: rounded,
		Seen: documented("platform.claude.com rate-limits; recorded in a test of tidyllm"),
	}
}

func anthropicPriority(what, dimension string) Header {
	const prefix = "Anthropic-Priority-"
	return Header{
		Dimension: dimension, Limit: prefix + what + "-Limit", Remaining: prefix + what + "-Remaining",
		Reset: prefix + what + "-Reset", Seen: documented("platform.claude.com rate-limits"),
	}
}
