package refuse

import (
	"net/http"

	"google.golang.org/grpc/codes"
)

// Reason is why a request does not pass.
type Reason int

// The reasons.
const (
	// Undecided: it could not be checked, and what can't be checked does not pass here.
	Undecided Reason = iota
	// RetryBudget: too many of the client's requests are retries.
	RetryBudget
	// Attempts: this piece of work was tried too often.
	Attempts
	// SpendCap: money is used up, until a person does something.
	SpendCap
	// Rate: a limit gives no more now.
	Rate
	// Concurrency: as many requests are in flight as may be.
	Concurrency
	// Quota: a window's amount is used up.
	Quota
	// Paused: the provider asked to wait.
	Paused
	// QueueFull: as many wait as may.
	QueueFull
	// WaitExpired: it waited as long as it might.
	WaitExpired
	// Capacity: there is trouble that no limit has to do with, at the provider or here.
	Capacity
	// CircuitOpen: the provider refused so often that nobody asks it now.
	CircuitOpen
	// TooLarge: it is larger than a limit ever gives at once.
	TooLarge
	// Unidentified: it does not say who asks, or not so that it can be believed.
	Unidentified
	// Forbidden: who asks may not.
	Forbidden
	// InFlight: the same idempotency key is being worked on.
	InFlight
	// KeyReused: the same idempotency key came with other work.
	KeyReused
	// Malformed: it can't be read, or lacks what it must have.
	Malformed
)

// hinting is what a refusal says about coming back.
type hinting int

const (
	// never: no waiting helps, and nobody should try.
	never hinting = iota
	// soon: in less than a minute, with a random part.
	soon
	// minute: in exactly as long as is configured, and nobody should try by himself.
	minute
	// honest: soon if it is, else as long as it takes, and nobody should try until then.
	honest
)

// The problem types of the IETF's draft of the RateLimit fields.
const (
	problems       = "https://iana.org/assignments/http-problem-types#"
	quotaExceeded  = problems + "quota-exceeded"
	reducedForNow  = problems + "temporary-reduced-capacity"
	abnormalUse    = problems + "abnormal-usage-detected"
	idempotencyKey = "Idempotency-Key"
)

// row is all that is said for a reason whatever the request.
type row struct {
	name    string
	status  int
	code    codes.Code
	hint    hinting
	problem string
	// openAI and anthropic are the types of errors, word is the code.
	openAI, anthropic, word string
	// param is the field at fault.
	param  string
	detail string
}

const (
	rateLimitError = "rate_limit_error"
	badRequest     = "invalid_request_error"
	overloaded     = "overloaded_error"
	unavailable    = "service_unavailable_error"
)

var rows = [...]row{
	Undecided: {
		"UNDECIDED", http.StatusServiceUnavailable, codes.Unavailable, soon, reducedForNow,
		unavailable, overloaded, "undecided", "", "The request could not be checked against its limits.",
	},
	RetryBudget: {
		"RETRY_BUDGET", http.StatusTooManyRequests, codes.ResourceExhausted, minute, abnormalUse,
		rateLimitError, rateLimitError, "retry_budget_exceeded", "",
		"Too many of this client's requests are retries.",
	},
	Attempts: {
		"ATTEMPTS", http.StatusTooManyRequests, codes.ResourceExhausted, minute, abnormalUse,
		rateLimitError, rateLimitError, "retry_budget_exceeded", "", "This piece of work was tried too often.",
	},
	SpendCap: {
		"SPEND_CAP", http.StatusTooManyRequests, codes.ResourceExhausted, never, quotaExceeded,
		"insufficient_quota", rateLimitError, "insufficient_quota", "",
		"What may be spent is spent, until somebody does something about it.",
	},
	Rate: {
		"RATE", http.StatusTooManyRequests, codes.ResourceExhausted, soon, quotaExceeded,
		rateLimitError, rateLimitError, "rate_limit_exceeded", "", "A limit gives no more now.",
	},
	Concurrency: {
		"CONCURRENCY", http.StatusTooManyRequests, codes.ResourceExhausted, soon, quotaExceeded,
		rateLimitError, rateLimitError, "concurrency_limit_exceeded", "",
		"As many requests are in flight as may be.",
	},
	Quota: {
		"QUOTA", http.StatusTooManyRequests, codes.ResourceExhausted, honest, quotaExceeded,
		rateLimitError, rateLimitError, "quota_exceeded", "", "What this window gives is used up.",
	},
	Paused: {
		"PAUSED", http.StatusTooManyRequests, codes.ResourceExhausted, soon, quotaExceeded,
		rateLimitError, rateLimitError, "rate_limit_exceeded", "", "The provider asked to wait.",
	},
	QueueFull: {
		"QUEUE_FULL", http.StatusTooManyRequests, codes.ResourceExhausted, soon, quotaExceeded,
		rateLimitError, rateLimitError, "queue_full", "", "As many requests wait as may.",
	},
	WaitExpired: {
		"WAIT_EXPIRED", http.StatusServiceUnavailable, codes.Unavailable, soon, reducedForNow,
		unavailable, overloaded, "queue_timeout", "", "It waited as long as it might.",
	},
	Capacity: {
		"CAPACITY", http.StatusServiceUnavailable, codes.Unavailable, soon, reducedForNow,
		unavailable, overloaded, "server_is_overloaded", "", "There is no capacity now, whoever asks.",
	},
	CircuitOpen: {
		"CIRCUIT_OPEN", http.StatusServiceUnavailable, codes.Unavailable, soon, reducedForNow,
		unavailable, overloaded, "circuit_open", "", "The provider refused so often that it is left alone now.",
	},
	TooLarge: {
		"TOO_LARGE", http.StatusRequestEntityTooLarge, codes.ResourceExhausted, never, "",
		badRequest, "request_too_large", "request_too_large", "", "It is larger than a limit ever gives at once.",
	},
	Unidentified: {
		"UNIDENTIFIED", http.StatusUnauthorized, codes.Unauthenticated, never, "",
		badRequest, "authentication_error", "client_unidentified", "", "It does not say who asks.",
	},
	Forbidden: {
		"FORBIDDEN", http.StatusForbidden, codes.PermissionDenied, never, "",
		"permission_error", "permission_error", "forbidden", "", "This client may not.",
	},
	InFlight: {
		"IN_FLIGHT", http.StatusConflict, codes.Aborted, soon, "",
		badRequest, badRequest, "idempotency_key_in_flight", idempotencyKey,
		"Work with this idempotency key has not ended.",
	},
	KeyReused: {
		"KEY_REUSED", http.StatusUnprocessableEntity, codes.InvalidArgument, never, "",
		badRequest, badRequest, "idempotency_key_reused", idempotencyKey,
		"This idempotency key was used for other work.",
	},
	Malformed: {
		"MALFORMED", http.StatusBadRequest, codes.InvalidArgument, never, "",
		badRequest, badRequest, "malformed", "", "The request can't be read.",
	},
}

// row is that of a reason. What is no reason is Undecided.
func (r Reason) row() *row {
	if r < 0 || int(r) >= len(rows) {
		r = Undecided
	}
	return &rows[r]
}

// String is the reason in capitals.
func (r Reason) String() string { return r.row().name }

// Status is the HTTP status that it is refused with.
func (r Reason) Status() int { return r.row().status }
