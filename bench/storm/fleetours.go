package storm

import (
	"crypto/sha256"
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/storm/authority"
)

const (
	tenantLimit = "tenant"
	gateLimit   = "tenant-gate"
	slots       = "slots"
	// tenantPace is what of a tenant's limit is handed out, in hundredths of a
	// percent.
	tenantPace = 9000
	// fleetPatience is how long a job waits for its lease.
	fleetPatience = 10 * time.Minute
	// wideGate is how many calls of a tenant may be in flight. Nine a second of two
	// seconds each are eighteen, and the burst nine more.
	wideGate = 32
	// narrowGate is that of the instances, for the whole fleet.
	narrowGate = 4
)

// tenantLimits are a bucket and a gate for each tenant, for all instances
// together.
func tenantLimits(gate int64) *logv1.ApplyLimits {
	rate := authority.Limit(tenantLimit, authority.Dimension(provider.Requests, tenantMinute, time.Minute, 9))
	rate.Keyed, rate.Target = true, tenantPace
	concurrent := authority.Limit(gateLimit, &logv1.Dimension{Name: slots, Interval: 1, Burst: gate})
	concurrent.Keyed, concurrent.Kind = true, logv1.Kind_KIND_CONCURRENCY
	return &logv1.ApplyLimits{Limits: []*logv1.Limit{rate, concurrent}}
}

// leased is the fleet with a lease for each call.
type leased struct {
	*fleet
	cluster *authority.Authority
	// patience is how long a job waits for its lease.
	patience time.Duration
	// served hears of each call that was answered, and denied ends a job without a lease.
	served func()
	denied func(j *job, a authority.Answer, end func(ok bool))

	inFlight, mostInFlight int
	coalesced, refused     int
	longest                int
}

func newLeased(seed uint64, o *Outcome, gate int64) *leased {
	f := newFleet(seed, o)
	l := &leased{fleet: f, cluster: authority.New(f.Stage, 3, tenantLimits(gate)), patience: fleetPatience}
	l.served = func() {}
	l.denied = func(_ *job, _ authority.Answer, end func(ok bool)) { end(false) }
	f.serve = l.work
	return l
}

// leaseID is the same for equal work: a lease id is granted once, so that two
// instances can't both execute a job (G4).
func (l *leased) leaseID(j *job) []byte {
	if j.tenant != importer {
		return l.cluster.NewID()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "tenant %d, job %d", j.tenant, j.hash))
	return sum[:16]
}

func (l *leased) work(j *job, end func(ok bool)) {
	tenant := fmt.Sprintf("tenant-%d", j.tenant)
	op := &logv1.Acquire{
		LeaseId: l.leaseID(j), Client: tenant, Track: true,
		Charges: []*logv1.Charge{
			authority.Charge(tenantLimit, tenant, provider.Requests, 1), authority.Charge(gateLimit, tenant, slots, 1),
		},
	}
	l.cluster.Acquire(&authority.Ask{Operation: op, MaxWait: l.patience, Done: func(a authority.Answer) {
		switch {
		case a.Repeated:
			// Somebody else has the lease and does the work; its answer is this one's.
			l.coalesced++
		case a.Granted:
			l.call(j, op, end)
		default:
			l.denied(j, a, end)
		}
	}})
	l.longest = max(l.longest, l.cluster.Waiting())
}

// call spends a lease. A refusal would go to the fallback, as it did before.
func (l *leased) call(j *job, op *logv1.Acquire, end func(ok bool)) {
	l.inFlight++
	l.mostInFlight = max(l.mostInFlight, l.inFlight)
	client := l.client(j)
	client.most = 1
	client.try(0, func(ok bool) {
		l.inFlight--
		if ok {
			l.served()
		} else {
			l.refused++
		}
		l.cluster.Settle(op)
		end(ok)
	})
}

func fleetOurs(seed uint64, o *Outcome) {
	l := newLeased(seed, o, wideGate)
	l.play()
	all, again := l.executed()
	o.exactly(Attempts, l.importer.attempts, importJobs)
	o.within(PerDone, l.importer.perDone(), 1, 1)
	o.exactly(Unique, len(l.done), importJobs)
	o.exactly(Executed, all, importJobs)
	o.exactly(Duplicates, again, 0)
	o.exactly(Coalesced, l.coalesced, importJobs/twice)
	o.exactly(ProviderNo, l.refused, 0)
	o.within(RefusedPart, l.importer.refused(), 0, 0)
	o.exactly(FallbackCalls, l.refused, 0)
	o.within(Drained, l.drained.Seconds(), 220, 230)
	o.within(OthersP95, quantile(l.waits, 0.95).Seconds(), 2, 2.1)
	o.within(OthersP99, quantile(l.waits, 0.99).Seconds(), 2, 2.1)
	o.show(QueueMost, float64(l.longest))
	o.within(HerdNow, Herd(l.importer.retries), 0, 0)
	narrow := newLeased(seed, &Outcome{}, narrowGate)
	narrow.importOnly(time.Minute)
	o.exactly(InFlight, narrow.mostInFlight, narrowGate)
	fallbackAware(seed, o)
}

// importOnly plays the import alone, until end.
func (f *fleet) importOnly(end time.Duration) {
	f.imports()
	f.until(end)
}
