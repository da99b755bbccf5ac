package limitsfile

import (
	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

var (
	periods = written.Words[quorleasev1.Quota_Period]{
		{"hour", quorleasev1.Quota_HOUR}, {"day", quorleasev1.Quota_DAY}, {"month", quorleasev1.Quota_MONTH},
	}
	enforcements = written.Words[quorleasev1.Mode]{
		{"off", quorleasev1.Mode_OFF},
		{"shadow", quorleasev1.Mode_SHADOW},
		{"warn", quorleasev1.Mode_WARN},
		{"enforce", quorleasev1.Mode_ENFORCE},
	}
	scopes = written.Words[quorleasev1.Scope]{
		{"client", quorleasev1.Scope_CLIENT}, {"retries", quorleasev1.Scope_RETRIES},
	}
)

func (d *decoder) enforcement(n ast.Node, path string) quorleasev1.Mode {
	if n == nil {
		return quorleasev1.Mode_MODE_UNSPECIFIED
	}
	mode, _ := strict.Value(d.Reader, n, path, "off, shadow, warn or enforce", enforcements.Parse)
	return mode
}

func (d *decoder) scope(n ast.Node, path string) quorleasev1.Scope {
	if n == nil {
		return quorleasev1.Scope_SCOPE_UNSPECIFIED
	}
	scope, _ := strict.Value(d.Reader, n, path, "client or retries", scopes.Parse)
	return scope
}

// In the log an absent enum is the default, so that what was logged before there
// was one reads as it was meant; in the public protocol it is unspecified. The
// numbers are one apart.

// LimitMode is the public form of a mode that was logged.
func LimitMode(m logv1.Mode) quorleasev1.Mode { return quorleasev1.Mode(m) + 1 }

// BudgetScope is the public form of a scope that was logged.
func BudgetScope(s logv1.Scope) quorleasev1.Scope { return quorleasev1.Scope(s) + 1 }

func (r *resolver) enforcement(m quorleasev1.Mode) logv1.Mode {
	switch {
	case m == quorleasev1.Mode_MODE_UNSPECIFIED:
		return logv1.Mode_MODE_ENFORCE
	case enforcements.Name(m) == "":
		r.fail("mode", "%d is no mode", m)
		return logv1.Mode_MODE_ENFORCE
	}
	return logv1.Mode(m - 1)
}

func (r *resolver) scope(s quorleasev1.Scope) logv1.Scope {
	switch {
	case s == quorleasev1.Scope_SCOPE_UNSPECIFIED:
		return logv1.Scope_SCOPE_CLIENT
	case scopes.Name(s) == "":
		r.fail("scope", "%d is no scope", s)
		return logv1.Scope_SCOPE_CLIENT
	}
	return logv1.Scope(s - 1)
}
