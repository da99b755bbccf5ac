package doctor

import (
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/plan"
)

var (
	noHeadroom = kind{
		NoHeadroom, Warning,
		"lower target, or measure the error of the estimates and examine again with --error",
	}
	sharesLeft = kind{
		SharesLeft, Note,
		"make them 100% together, or give a share of 0% to the class that is to live on what is left",
	}
	fallbackShares = kind{
		FallbackShares, Warning,
		"lower fallback.share to 100% divided by how many clients there are",
	}
	sourceMissing = kind{
		SourceMissing, Note,
		"write source: {url: …, verified_at: …} with the day on which somebody looks the numbers up",
	}
	sourceStale = kind{
		SourceStale, Warning,
		"look the numbers up again and write the day into source.verified_at",
	}
	sourceAhead = kind{
		SourceAhead, Warning,
		"write the day on which somebody looked",
	}
)

func (e *examination) limit(at string, l *logv1.Limit) {
	if providers(l) {
		e.headroom(at, l)
	}
	e.source(at, l)
	e.shares(at, l)
	e.fallback(at, l)
}

// providers says whether a limit stands for one of a provider's: a rate that says
// where its numbers come from, or that all share. A rate for each tenant is mostly
// a rule of the house, which needs no headroom.
func providers(l *logv1.Limit) bool {
	rate := l.GetKind() == logv1.Kind_KIND_RATE && !l.GetUnlimited()
	return rate && (l.GetSource() != nil || !l.GetKeyed())
}

func (e *examination) headroom(at string, l *logv1.Limit) {
	margin, why := int64(plan.MarginUnmeasured), "while nobody has measured how far estimates are off"
	if e.options.ErrorP99 != nil {
		margin, why = *e.options.ErrorP99, "with estimates that are off by "+written.FormatShare(*e.options.ErrorP99)
	}
	if most := bucket.Whole - margin; l.GetTarget() > most {
		e.add(noHeadroom, at+".target", "%s hands out %s of the limit, more than %s, %s", limitsfile.Quote(l.GetName()),
			written.FormatShare(l.GetTarget()), written.FormatShare(most), why)
	}
}

// daySeconds are those of a day: a time.Duration ends after 292 years.
const daySeconds = 24 * 60 * 60

func (e *examination) source(at string, l *logv1.Limit) {
	text := l.GetSource().GetVerifiedAt()
	if text == "" {
		if providers(l) {
			e.add(sourceMissing, at+".source.verified_at", "%s does not say when its numbers were looked up",
				limitsfile.Quote(l.GetName()))
		}
		return
	}
	then, err := time.Parse(time.DateOnly, text)
	if err != nil {
		// The file was refused then.
		return
	}
	// Both are days: what is a day old anywhere is no older here.
	y, m, d := e.options.Now.Date()
	switch age := (time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() - then.Unix()) / daySeconds; {
	case age > StaleAfter:
		e.add(sourceStale, at+".source.verified_at", "the numbers of %s were looked up on %s, %d days ago, more than %d",
			limitsfile.Quote(l.GetName()), text, age, StaleAfter)
	case age < -1:
		e.add(sourceAhead, at+".source.verified_at", "%s is %d days ahead", text, -age)
	}
}

// shares finds what is guaranteed to nobody though every class has a share. What is
// more than all of it is refused where the file is read.
func (e *examination) shares(at string, l *logv1.Limit) {
	sum := int64(0)
	for _, c := range l.GetClasses() {
		if c.GetShare() == 0 {
			return
		}
		sum += c.GetShare()
	}
	if sum > 0 && sum < bucket.Whole {
		e.add(sharesLeft, at+".classes", "the shares of %s are %s together: %s is guaranteed to nobody",
			limitsfile.Quote(l.GetName()), written.FormatShare(sum), written.FormatShare(bucket.Whole-sum))
	}
}

// fallback multiplies what each client may use alone with how many there are.
func (e *examination) fallback(at string, l *logv1.Limit) {
	if limitsfile.Mode(l) != quorleasev1.FallbackMode_SHARE_ON_LOSS || l.FallbackShare == nil {
		return
	}
	instances := int64(0)
	for i := range e.file.Clients {
		if n := e.file.Clients[i].Instances; n != nil {
			instances += *n
		}
	}
	if all := instances * l.GetFallbackShare(); all > bucket.Whole {
		e.add(fallbackShares, at+".fallback.share", "%s for each of %d clients are %s of the limit, while nobody answers",
			written.FormatShare(l.GetFallbackShare()), instances, written.FormatShare(all))
	}
}
