package convert

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Bounds of one operation.
const (
	chargesMax = 16
	usagesMax  = 64
	reasonMax  = 512
	topDefault = 20
	topMax     = 1000
	// fieldsMax bounds how many fields one error names.
	fieldsMax = 20
	ttlMin    = time.Millisecond
	ttlMax    = 24 * time.Hour
)

// checker collects the fields of a request that can't be used. It allocates
// nothing while all is well.
type checker struct{ fields limitsfile.FieldErrors }

func (c *checker) fail(name, format string, args ...any) {
	if len(c.fields) < fieldsMax {
		c.fields = append(c.fields, &limitsfile.FieldError{Field: name, Problem: fmt.Sprintf(format, args...)})
	}
}

// problem is fail for a check that returns "" where all is well.
func (c *checker) problem(name, problem string) {
	if problem != "" {
		c.fail(name, "%s", problem)
	}
}

// err is nil where all is well.
func (c *checker) err() error {
	if len(c.fields) == 0 {
		return nil
	}
	return c.fields
}

// leaseID reads 32 lower-case hex digits into 16 bytes.
func (c *checker) leaseID(s string) []byte {
	return c.hex("lease_id", s)
}

func (c *checker) hex(name, s string) []byte {
	const digits = "0123456789abcdef"
	if len(s) == 32 && strings.Trim(s, digits) == "" {
		id := make([]byte, 16)
		for i := range id {
			id[i] = byte(strings.IndexByte(digits, s[2*i])<<4 | strings.IndexByte(digits, s[2*i+1]))
		}
		return id
	}
	if s == "" {
		c.fail(name, "missing: 32 lower-case hex digits")
	} else {
		c.fail(name, "%s is not 32 lower-case hex digits", limitsfile.Quote(s))
	}
	return nil
}

// duration reads a duration within inclusive bounds; absent means missing.
func (c *checker) duration(name string, d *durationpb.Duration, least, most time.Duration) time.Duration {
	if d == nil {
		c.fail(name, "missing: %v to %v", least, most)
		return 0
	}
	value := d.AsDuration()
	if d.CheckValid() != nil || value < least || value > most {
		c.fail(name, "%v is out of range %v..%v", value, least, most)
		return 0
	}
	return value
}

func (c *checker) charges(list []*quorleasev1.Charge) {
	switch n := len(list); {
	case n == 0:
		c.fail("charges", "missing: 1 to %d", chargesMax)
	case n > chargesMax:
		c.fail("charges", "%d charges, more than %d", n, chargesMax)
		return
	}
	for i, charge := range list {
		c.charge(i, charge)
		for j := range i {
			other := list[j]
			if other.GetDimension() == charge.GetDimension() && other.GetKey() == charge.GetKey() &&
				other.GetLimit() == charge.GetLimit() {
				c.fail(at("charges", i, ""), "the same limit, key and dimension as charges[%d]", j)
			}
		}
	}
}

func (c *checker) charge(i int, charge *quorleasev1.Charge) {
	if problem := limitsfile.NameProblem(charge.GetLimit()); problem != "" {
		c.fail(at("charges", i, "limit"), "%s", problem)
	}
	if problem := limitsfile.KeyProblem(charge.GetKey()); problem != "" {
		c.fail(at("charges", i, "key"), "%s", problem)
	}
	if problem := limitsfile.DimensionProblem(charge.GetDimension()); problem != "" {
		c.fail(at("charges", i, "dimension"), "%s", problem)
	}
	if n := charge.GetAmount(); n < 1 || n > bucket.MaxTokens {
		c.fail(at("charges", i, "amount"), "%d is out of range 1..%d", n, int64(bucket.MaxTokens))
	}
}

func (c *checker) used(list []*quorleasev1.Usage) {
	if n := len(list); n > usagesMax {
		c.fail("used", "%d entries, more than %d", n, usagesMax)
		return
	}
	for i, usage := range list {
		c.usage(i, usage)
		for j := range i {
			other := list[j]
			if other.GetDimension() == usage.GetDimension() && other.GetKey() == usage.GetKey() &&
				other.GetLimit() == usage.GetLimit() {
				c.fail(at("used", i, ""), "the same limit, key and dimension as used[%d]", j)
			}
		}
	}
}

func (c *checker) usage(i int, usage *quorleasev1.Usage) {
	if usage.GetLimit() != "" {
		c.problem(at("used", i, "limit"), limitsfile.NameProblem(usage.GetLimit()))
	} else if usage.GetKey() != "" {
		c.fail(at("used", i, "limit"), "missing beside the key %s", limitsfile.Quote(usage.GetKey()))
	}
	c.problem(at("used", i, "key"), limitsfile.KeyProblem(usage.GetKey()))
	c.problem(at("used", i, "dimension"), limitsfile.DimensionProblem(usage.GetDimension()))
	if n := usage.GetUsed(); n < 0 || n > bucket.MaxTokens {
		c.fail(at("used", i, "used"), "%d is out of range 0..%d", n, int64(bucket.MaxTokens))
	}
}

// class checks the name of a class; empty means the first one.
func (c *checker) class(s string) {
	if s != "" {
		c.problem("class", limitsfile.ClassProblem(s))
	}
}

// at names a field of an element of a list, or the element.
func at(list string, i int, name string) string {
	if name == "" {
		return fmt.Sprintf("%s[%d]", list, i)
	}
	return fmt.Sprintf("%s[%d].%s", list, i, name)
}

// Name checks the name of a limit or retry budget.
func Name(field, name string) error {
	c := &checker{}
	c.problem(field, limitsfile.NameProblem(name))
	return c.err()
}

// Inspect checks which bucket is to be shown.
func Inspect(r *quorleasev1.LimitsInspectRequest) error {
	c := &checker{}
	c.problem("limit", limitsfile.NameProblem(r.GetLimit()))
	c.problem("key", limitsfile.KeyProblem(r.GetKey()))
	return c.err()
}

// Top is how many clients are to be shown.
func Top(r *quorleasev1.ClientsListRequest) (int, error) {
	c := &checker{}
	return c.top(r.GetTop()), c.err()
}

// top is how many rows are to be shown.
func (c *checker) top(n uint32) int {
	if n == 0 {
		return topDefault
	}
	if n > topMax {
		c.fail("top", "%d is out of range 0..%d", n, topMax)
	}
	return int(n)
}

// Hello checks the first message of a session. It returns the session's id.
func Hello(h *quorleasev1.Hello) ([]byte, error) {
	c := &checker{}
	if h == nil {
		c.fail("hello", "missing: it is the first message of a session")
		return nil, c.err()
	}
	c.problem("hello.client", limitsfile.ClientProblem(h.GetClient()))
	id := c.hex("hello.session_id", h.GetSessionId())
	return id, c.err()
}

// Patience is how long the caller of a session's item waits; absent where it
// does not say.
func Patience(item *quorleasev1.RequestItem, absent time.Duration) (time.Duration, error) {
	if item.GetTimeout() == nil {
		return absent, nil
	}
	c := &checker{}
	patience := c.duration("timeout", item.GetTimeout(), time.Microsecond, time.Hour)
	return patience, c.err()
}

// Wrong is an error that names one field.
func Wrong(field, problem string) error {
	return limitsfile.FieldErrors{{Field: field, Problem: problem}}
}
