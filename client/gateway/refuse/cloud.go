package refuse

import (
	"net/http"
	"strconv"
	"time"

	"github.com/quorlease/quorlease/client/grpcmw"
)

// googleError is the form of Google's. Its clients look for details by their type.
type googleError struct {
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
		Details []any  `json:"details"`
	} `json:"error"`
}

const typePrefix = "type.googleapis.com/google.rpc."

type googleRetry struct {
	Type  string `json:"@type"`
	Delay string `json:"retryDelay"`
}

type googleInfo struct {
	Type   string `json:"@type"`
	Reason string `json:"reason"`
	Domain string `json:"domain"`
}

type googleQuota struct {
	Type       string            `json:"@type"`
	Violations []googleViolation `json:"violations"`
}

type googleViolation struct {
	Subject     string `json:"subject"`
	Description string `json:"description"`
}

// googleStatus are Google's names of what HTTP has numbers for.
var googleStatus = map[int]string{
	http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusServiceUnavailable: "UNAVAILABLE",
	http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED",
	http.StatusConflict: "ABORTED",
}

func (r *Refusal) google(hint Hint) (e googleError) {
	row := r.Reason.row()
	e.Error.Code, e.Error.Message, e.Error.Status = row.status, r.message(hint), googleStatus[row.status]
	if e.Error.Status == "" {
		e.Error.Status = "INVALID_ARGUMENT"
	}
	e.Error.Details = []any{googleInfo{typePrefix + "ErrorInfo", row.name, "quorlease"}}
	var violations []googleViolation
	for _, p := range r.told() {
		if p.Reason != "" {
			violations = append(violations, googleViolation{
				grpcmw.Subject(visible(p.Limit), visible(p.Dimension)), visible(p.Reason),
			})
		}
	}
	if violations != nil {
		e.Error.Details = append(e.Error.Details, googleQuota{typePrefix + "QuotaFailure", violations})
	}
	if hint.Said {
		// Seconds as protocol buffers write them.
		delay := strconv.FormatFloat(float64(hint.Wait.Milliseconds())/float64(time.Second/time.Millisecond), 'f', -1, 64)
		e.Error.Details = append(e.Error.Details, googleRetry{typePrefix + "RetryInfo", delay + "s"})
	}
	return e
}

// awsError is the form of AWS. Its name stands in a header as well, where clients look first.
type awsError struct {
	Type    string `json:"__type"`
	Message string `json:"message"`
}

const headerErrorType = "X-Amzn-Errortype"

// awsNames are what Bedrock calls what HTTP has numbers for.
var awsNames = map[int]string{
	http.StatusTooManyRequests: "ThrottlingException", http.StatusServiceUnavailable: "ServiceUnavailableException",
	http.StatusUnauthorized: "UnrecognizedClientException", http.StatusForbidden: "AccessDeniedException",
	http.StatusConflict: "ConflictException",
}

const (
	awsInvalid = "ValidationException"
	awsSpent   = "ServiceQuotaExceededException"
)

// aws changes an answer to what clients of AWS obey: they try again what has a status of 429,
// whatever else it says, and so what no waiting helps has Bedrock's own status for it, 400.
func (r *Refusal) aws(a *Answer, hint Hint) awsError {
	name, ok := awsNames[a.Status]
	switch {
	case r.Reason == SpendCap || r.Reason == Quota && hint.Stop:
		name, a.Status = awsSpent, http.StatusBadRequest
	case !ok:
		name = awsInvalid
	}
	a.Header.Set(headerErrorType, name)
	return awsError{name, r.message(hint)}
}
