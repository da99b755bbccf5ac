package failopen

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/retry"
)

// Config is what a Machine starts with. The zero Config is open for every limit,
// with the default retry budget.
type Config struct {
	// Fallback is the rule of limits that nobody has said anything of; its Limit
	// is not used. Its SharePPM also counts for a limit in mode Share of which no
	// share is known; nil is a share of 0, which admits nothing.
	Fallback Fallback
	// Static are the rules for a cold start: they count until the authority has
	// said something else. No limit twice.
	Static []Fallback
	// Retries is the budget of each client until the authority has said something
	// else, and of one that it gives none. nil: DefaultRetries.
	Retries *retry.Rule
	// Tokens is the balance that each client's retries are paid from, in this process
	// alone, beside the budget. nil: none.
	Tokens *retry.TokenRule
	// KeysMax is how many keys, by limit, dimension and class, are counted apart;
	// further ones are counted under their limit (Account.Overflow), and in mode
	// Share have one bucket together. Default 100,000.
	KeysMax int
	// Booked: the authority promises shares of the limits that it speaks of (Promised), and
	// what their rules say of shares is for others. Until it has promised something a
	// share is 0, and not that of the configuration (T52).
	Booked bool
	// ClientsMax is how many clients have a retry budget of their own at a time;
	// further ones share one. Default 1,000, of 7 kB each at most.
	ClientsMax int
}

// rulesMax bounds the limits whose rules are kept (G10). It is far above what an
// authority has.
const rulesMax = 10_000

// Machine is a client's state and its rules for deciding by itself. Make one
// with New. It is safe for concurrent use.
type Machine struct {
	// state is mu.row.state, to be read without the lock: an answer in time is
	// observed for every call, and changes nothing while all is well.
	state atomic.Int32

	mu struct {
		sync.Mutex
		row row
		// origin is the moment that times are counted from, the first that was
		// passed.
		origin   time.Time
		rules    map[string]*rule
		standard *rule
		budgets  budgets
		accounts accounts
		incident incident
		// slots are scratch space of charge.
		slots []slot
	}
	// static are the shares of the configuration, by limit. They don't change.
	static map[string]int64
	// tokens is the rule of balances, nil where there are none. It doesn't change.
	tokens *retry.TokenRule
	// booked is Config.Booked.
	booked bool
}

// New makes a Machine that is Healthy. It returns an error that names the field
// where the configuration can't be used.
func New(config Config) (*Machine, error) {
	retries := DefaultRetries()
	if config.Retries != nil {
		retries = *config.Retries
	}
	if err := checkRetries(&retries); err != nil {
		return nil, err
	}
	if config.Tokens != nil {
		if err := config.Tokens.Validate(); err != nil {
			return nil, fmt.Errorf("retry_tokens: %w", err)
		}
	}
	if config.KeysMax < 0 || config.ClientsMax < 0 {
		return nil, fmt.Errorf("keys_max %d, clients_max %d: must not be negative", config.KeysMax, config.ClientsMax)
	}
	share := int64(0)
	if config.Fallback.SharePPM != nil {
		share = *config.Fallback.SharePPM
	}
	m := &Machine{static: make(map[string]int64), tokens: config.Tokens, booked: config.Booked}
	standard, err := compile(config.Fallback, share)
	if err != nil {
		return nil, fmt.Errorf("fallback: %w", err)
	}
	m.mu.standard = standard
	m.mu.rules = make(map[string]*rule)
	for _, f := range config.Static {
		if m.mu.rules[f.Limit] != nil {
			return nil, fmt.Errorf("static: limit %q: is there twice", f.Limit)
		}
		if m.mu.rules[f.Limit], err = compile(f, share); err != nil {
			return nil, fmt.Errorf("static: %w", err)
		}
		m.static[f.Limit] = m.mu.rules[f.Limit].share
	}
	m.mu.budgets = newBudgets(retries, config.Tokens, orDefault(config.ClientsMax, 1_000))
	m.mu.accounts = newAccounts(orDefault(config.KeysMax, 100_000))
	return m, nil
}

func orDefault(value, standard int) int {
	if value == 0 {
		return standard
	}
	return value
}

// Observe takes in what a call or a probe found out, and says what it changed.
// One Started and one Ended are returned for each incident, whoever observes:
// raise and resolve the alert where they are.
func (m *Machine) Observe(now time.Time, s Signal) Change { return m.ObserveCall(now, now, s) }

// ObserveCall is Observe for a call that began at began: of slow calls that
// overlap only one counts as a miss.
func (m *Machine) ObserveCall(began, now time.Time, s Signal) Change {
	if s == Answered && m.State() == Healthy {
		return None
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.sinceLocked(now)
	change := m.mu.row.observe(at-now.Sub(began), at, s)
	m.state.Store(int32(m.mu.row.state))
	switch change {
	case Started:
		m.mu.incident = incident{
			number: m.mu.incident.number + 1, started: now, startedAt: bucket.Instant(at), cause: s,
		}
	case Ended:
		m.mu.incident.ended = now
	case None:
	}
	return change
}

// State is how the client stands with the authority. It takes no lock.
func (m *Machine) State() State { return State(m.state.Load()) }

// Away says whether callers should be answered by Decide at once, without asking
// anybody. It takes no lock.
func (m *Machine) Away() bool {
	state := m.State()
	return state == Away || state == Recovering
}

// sinceLocked is the time since the first moment that was passed. It is negative
// for a caller who looked at the clock before and came later.
func (m *Machine) sinceLocked(now time.Time) time.Duration {
	if m.mu.origin.IsZero() {
		m.mu.origin = now
	}
	return now.Sub(m.mu.origin)
}

// Lesson is what an answer of the authority says about deciding without it.
type Lesson struct {
	// Client is whom Retries are about.
	Client string
	// Revision is the limits' revision that everything here is of.
	Revision uint64
	Limits   []Fallback
	// Retries is the client's retry budget; nil is that it has none. Then that of
	// the configuration holds all the same for what is decided locally, so that no
	// storm forms because the authority is away.
	Retries *retry.Rule
}

// Learn keeps what the authority said; the last one counts. What can't be used
// is left out, and the error names it.
func (m *Machine) Learn(now time.Time, l Lesson) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.sinceLocked(now)
	var problems []error
	for _, f := range l.Limits {
		problems = append(problems, m.learnLocked(at, l.Revision, f))
	}
	if l.Retries != nil {
		if err := checkRetries(l.Retries); err != nil {
			return errors.Join(append(problems, err)...)
		}
	}
	if one := m.mu.budgets.of(at, l.Client); one != &m.mu.budgets.rest {
		rule := m.mu.budgets.standard
		if l.Retries != nil {
			rule = *l.Retries
		}
		one.learn(at, l.Revision, rule)
		one.limited = l.Retries != nil
	}
	return errors.Join(problems...)
}

func (m *Machine) learnLocked(at time.Duration, revision uint64, f Fallback) error {
	old, booked := m.mu.rules[f.Limit], m.booked && f.Mode == Share
	if booked {
		f.SharePPM = nil
	}
	if old != nil && old.learnt && old.equal(&f) {
		old.revision = revision
		return nil
	}
	if old == nil && len(m.mu.rules) >= rulesMax {
		return fmt.Errorf("limit %q: there are %d already, which is the most", f.Limit, rulesMax)
	}
	share, ok := m.static[f.Limit]
	if !ok {
		share = m.mu.standard.share
	}
	var promised kept
	if booked {
		share = 0
		if old != nil && old.booked {
			share, promised = old.share, old.kept
		}
	}
	learnt, err := compile(f, share)
	if err != nil {
		return err
	}
	learnt.Limit = strings.Clone(f.Limit)
	learnt.learnt, learnt.revision, learnt.since = true, revision, bucket.Instant(at)
	learnt.booked, learnt.kept = booked, promised
	m.mu.rules[learnt.Limit] = learnt
	return nil
}

// Known is the oldest revision of the rules of these charges and of the client's
// budget: what to ask the authority with, so that it repeats only what is newer.
// ok is false where something was never learnt.
func (m *Machine) Known(client string, charges []Charge) (revision uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.mu.budgets.clients[client]
	if one == nil || !one.learnt {
		return 0, false
	}
	revision = one.revision
	for i := range charges {
		r := m.mu.rules[charges[i].Limit]
		if r == nil || !r.learnt {
			return 0, false
		}
		revision = min(revision, r.revision)
	}
	return revision, true
}

// ruleLocked is the rule of a limit.
func (m *Machine) ruleLocked(limit string) *rule {
	if r := m.mu.rules[limit]; r != nil {
		return r
	}
	return m.mu.standard
}

// Pending is up to most accounts of which the authority has not booked
// everything, the longest waiting first: what to report next. Those that
// overflowed are not among them.
func (m *Machine) Pending(most int) []Account {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.accounts.unbooked(most)
}

// Booked takes note that the authority has dealt with a report of these, or with
// a later one. Repeating it, or an old one, changes nothing (T35).
func (m *Machine) Booked(reported []Account) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.accounts.booked(reported)
}

// StartOver forgets the accounts, so that counts begin at 0 again, and gives
// their memory back. It does so only where everything is booked and the client is
// not away, and says whether it did. Then what is reported has to be under
// another session id: the authority would take it for something that it knows.
//
// The authority remembers a count for 24 h after it last grew. Start over before
// that, best whenever a report has been booked to the end: a count that went on
// would be booked a second time.
func (m *Machine) StartOver() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.mu.row.away() && m.mu.accounts.clear()
}

// Admitted is everything that was admitted locally and not started over, sorted
// by limit, dimension, key and class.
func (m *Machine) Admitted() []Account {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.accounts.all()
}
