package bucket

import (
	"math/big"

	"pgregory.net/rapid"
)

// oracle is a second bucket, written from the definition alone: it goes
// nanosecond by nanosecond, in math/big, in a unit that is not reduced. It
// shares no arithmetic with the package.
type oracle struct {
	spec                         Spec
	listed                       []ClassSpec
	unit, total, burst, debtMost *big.Int
	weights, rooms               []*big.Int
	spare                        *big.Int

	now           int64
	free          *big.Int
	levels, debts []*big.Int
}

func num(n int64) *big.Int               { return big.NewInt(n) }
func sum(a, b *big.Int) *big.Int         { return new(big.Int).Add(a, b) }
func less(a, b *big.Int) *big.Int        { return new(big.Int).Sub(a, b) }
func times(a *big.Int, n int64) *big.Int { return new(big.Int).Mul(a, num(n)) }

func lesser(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func newOracle(spec Spec) *oracle {
	o := &oracle{spec: spec, listed: spec.Classes}
	if len(o.listed) == 0 {
		o.listed = []ClassSpec{{}}
	}
	o.unit = times(times(num(int64(spec.Interval)), Whole), Whole)
	perShare := times(num(spec.Amount), spec.Target)
	o.total = times(perShare, Whole)
	o.burst = times(o.unit, spec.Burst)
	o.debtMost = times(o.unit, spec.MaxDebt)
	o.spare = o.total
	for _, c := range o.listed {
		o.weights = append(o.weights, times(perShare, c.Share))
		o.rooms = append(o.rooms, times(o.unit, c.SubBurst))
		o.spare = less(o.spare, times(perShare, c.Share))
	}
	o.reset()
	return o
}

func (o *oracle) reset() {
	o.free = o.burst
	o.levels, o.debts = nil, nil
	for _, room := range o.rooms {
		o.levels = append(o.levels, room)
		o.debts = append(o.debts, num(0))
		o.free = less(o.free, room)
	}
}

func (o *oracle) reserved() *big.Int {
	all := num(0)
	for _, level := range o.levels {
		all = sum(all, level)
	}
	return all
}

func (o *oracle) pour(units *big.Int) {
	o.free = lesser(sum(o.free, units), less(o.burst, o.reserved()))
}

func (o *oracle) nanosecond() {
	o.now++
	spare := o.spare
	for c, in := range o.weights {
		paid := lesser(in, o.debts[c])
		o.debts[c] = less(o.debts[c], paid)
		in = less(in, paid)
		kept := lesser(in, less(o.rooms[c], o.levels[c]))
		o.levels[c] = sum(o.levels[c], kept)
		spare = sum(spare, less(in, kept))
	}
	for c := range o.debts {
		paid := lesser(spare, o.debts[c])
		o.debts[c] = less(o.debts[c], paid)
		spare = less(spare, paid)
	}
	o.pour(spare)
}

func (o *oracle) effective(class int) int64 {
	left := o.spec.Burst
	for c, other := range o.listed {
		if c != class {
			left -= other.SubBurst
		}
	}
	return left
}

func (o *oracle) affords(class int, n int64) bool {
	return n >= 1 && n <= o.effective(class) && o.debts[class].Sign() == 0 &&
		times(o.unit, n).Cmp(sum(o.free, o.levels[class])) <= 0
}

func (o *oracle) take(class int, n int64) (took *big.Int, ok bool) {
	if !o.affords(class, n) {
		return num(0), false
	}
	took = lesser(o.levels[class], times(o.unit, n))
	o.levels[class] = less(o.levels[class], took)
	o.free = less(o.free, less(times(o.unit, n), took))
	return took, true
}

func (o *oracle) refund(class int, n int64, took *big.Int) {
	if n == 0 {
		return
	}
	back := times(o.unit, n)
	paid := lesser(back, o.debts[class])
	o.debts[class] = less(o.debts[class], paid)
	back = less(back, paid)
	part := lesser(lesser(back, took), less(o.rooms[class], o.levels[class]))
	o.levels[class] = sum(o.levels[class], part)
	o.pour(less(back, part))
}

func (o *oracle) excess(class int, n int64) (writtenOff int64) {
	rest := times(o.unit, n)
	part := lesser(rest, o.levels[class])
	o.levels[class] = less(o.levels[class], part)
	rest = less(rest, part)
	part = lesser(rest, o.free)
	o.free = less(o.free, part)
	rest = less(rest, part)
	if part = lesser(rest, less(o.debtMost, o.debts[class])); part.Sign() > 0 {
		o.debts[class] = sum(o.debts[class], part)
		rest = less(rest, part)
	}
	up := less(sum(rest, o.unit), num(1))
	return up.Quo(up, o.unit).Int64()
}

func (o *oracle) lower(n int64) {
	rest := times(o.unit, n)
	part := lesser(rest, o.free)
	o.free = less(o.free, part)
	for c := len(o.levels) - 1; c >= 0; c-- {
		rest = less(rest, part)
		part = lesser(rest, o.levels[c])
		o.levels[c] = less(o.levels[c], part)
	}
}

func (o *oracle) clone() *oracle {
	p := *o
	p.levels = append([]*big.Int(nil), o.levels...)
	p.debts = append([]*big.Int(nil), o.debts...)
	return &p
}

// affordsIn waits for up to most nanoseconds and says when the class first
// affords n; -1 for not so soon.
func (o *oracle) affordsIn(class int, n, most int64) int64 {
	for p := o.clone(); p.now-o.now <= most; p.nanosecond() {
		if p.affords(class, n) {
			return p.now - o.now
		}
	}
	return -1
}

func (o *oracle) isFull() bool {
	for c := range o.levels {
		if o.debts[c].Sign() > 0 || o.levels[c].Cmp(o.rooms[c]) < 0 {
			return false
		}
	}
	return sum(o.free, o.reserved()).Cmp(o.burst) == 0
}

// grain is the smallest part of a token that the package counts under this
// spec, found on its own: unit ÷ gcd(unit, every weight), as parts of a token.
func (o *oracle) grain() *big.Int {
	divisor := new(big.Int).GCD(nil, nil, o.unit, o.spare)
	for _, w := range o.weights {
		divisor.GCD(nil, nil, divisor, w)
	}
	return new(big.Int).Quo(o.unit, divisor)
}

// scaled is units of o in units of p, a whole number of p's grains, rounded down
// or up.
func (o *oracle) scaled(units *big.Int, p *oracle, up bool) *big.Int {
	grains := new(big.Int).Mul(units, p.grain())
	if up {
		grains.Add(grains, less(o.unit, num(1)))
	}
	grains.Quo(grains, o.unit)
	return grains.Mul(grains, new(big.Int).Quo(p.unit, p.grain()))
}

// convert is what the bucket becomes under another spec.
func (o *oracle) convert(spec Spec, origin []int) *oracle {
	p := newOracle(spec)
	p.now = o.now
	p.free = o.scaled(o.free, p, false)
	gone := map[int]bool{}
	for c := range o.levels {
		gone[c] = true
	}
	for i, from := range origin {
		p.levels[i], p.debts[i] = num(0), num(0)
		if from < 0 || !gone[from] {
			continue
		}
		delete(gone, from)
		level := o.scaled(o.levels[from], p, false)
		p.levels[i] = lesser(level, p.rooms[i])
		p.free = sum(p.free, less(level, p.levels[i]))
		p.debts[i] = o.scaled(o.debts[from], p, true)
	}
	for c := range gone {
		p.free = sum(p.free, o.scaled(o.levels[c], p, false))
		p.debts[0] = sum(p.debts[0], o.scaled(o.debts[c], p, true))
	}
	p.pour(num(0))
	return p
}

// requireSame compares the bucket with the oracle, part by part.
func requireSame(t rapid.TB, b *Bucket, s *Shape, o *oracle) {
	t.Helper()
	grain := new(big.Int).Quo(o.unit, num(s.unit))
	same := func(what string, class int, got int64, want *big.Int) {
		t.Helper()
		if new(big.Int).Mul(num(got), grain).Cmp(want) != 0 {
			t.Fatalf("%s of class %d: got %d units of a %d-th token, want %v of a %v-th\nspec %+v",
				what, class, got, s.unit, want, o.unit, o.spec)
		}
	}
	same("free", -1, b.free, o.free)
	for c := range o.levels {
		same("level", c, b.sub(c).level, o.levels[c])
		same("debt", c, b.sub(c).debt, o.debts[c])
	}
	if int64(b.last) != o.now {
		t.Fatalf("time: got %d, want %d", b.last, o.now)
	}
}
