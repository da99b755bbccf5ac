// Package refuse makes refusals: answers to questions that make no sense. It is
// pure.
package refuse

import (
	"errors"
	"fmt"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
)

// Refused is a Refusal as an error: the question was not answered, and nothing
// has changed.
type Refused struct{ *logv1.Refusal }

// Error is one line that names the field, where there is one, and the value.
func (r *Refused) Error() string {
	if r.GetField() == "" {
		return r.GetMessage()
	}
	return r.GetField() + ": " + r.GetMessage()
}

// For refuses for a cause. The message is made as by fmt.Sprintf.
func For(cause logv1.Refusal_Cause, field, format string, values ...any) error {
	return &Refused{&logv1.Refusal{Cause: cause, Field: field, Message: fmt.Sprintf(format, values...)}}
}

// Field refuses what a field has.
func Field(field, format string, values ...any) error {
	return For(logv1.Refusal_CAUSE_BAD_FIELD, field, format, values...)
}

// Text bounds a name that people chose, in bytes.
func Text(field, text string, least, most int) error {
	return Wrong("", check.Text(field, text, least, most))
}

// Wrong makes a bad field out of the *check.FieldError of a check, and leaves
// nil and other errors alone. prefix is where in the operation the field is.
func Wrong(prefix string, err error) error {
	if err == nil {
		return nil
	}
	var field *check.FieldError
	if !errors.As(err, &field) {
		return err
	}
	return Field(prefix+field.Field, "%s", field.Problem)
}

// Result is a *Refused as a result. Any other error is a broken invariant.
func Result(err error) *logv1.Result {
	var refused *Refused
	if !errors.As(err, &refused) {
		panic(fmt.Sprintf("fsm: %T %q is no refusal", err, err))
	}
	return &logv1.Result{Kind: &logv1.Result_Refusal{Refusal: refused.Refusal}}
}

// At names a field of an element of a list.
func At(list string, i int, name string) string { return fmt.Sprintf("%s[%d].%s", list, i, name) }
