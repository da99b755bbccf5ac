package disturb

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/quorlease/quorlease/bench/plot"
)

// JSON writes the result as one object.
func (r *Result) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// Text writes it for people.
func (r *Result) Text(w io.Writer) error {
	fmt.Fprintf(w, "%s grants a second at most; %s a second were asked for, whatever was answered.\n\n",
		plot.Number(r.MeasuredRate), plot.Number(r.OfferedRate))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what happened\ttimes\tasked\tnot granted\tfrom escrow\tp99 ms\tlongest ms"+
		"\tshort: longest\tentries: longest\tcallers late")
	for i := range r.Phases {
		p := &r.Phases[i]
		if p.Why != "" {
			fmt.Fprintf(table, "%s\tnot measured: %s\n", p.Name, p.Why)
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.Times, p.Plenty.Asked,
			p.Plenty.Asked-p.Plenty.Granted, plot.Number(float64(p.Plenty.Escrow)/float64(max(1, p.Plenty.Granted))),
			plot.Number(p.Plenty.P99), plot.Number(p.Plenty.Max), plot.Number(p.Short.Max), plot.Number(p.Exact.Max),
			plot.Number(p.LateMS))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for i := range r.Slacks {
		s := &r.Slacks[i]
		fmt.Fprintf(w, "%s: slack %s s, %d tokens; seen at most %s s, %d tokens\n", s.Limit,
			plot.Number(s.SlackMS/1000), s.SlackTokens, plot.Number(s.SeenMS/1000), s.SeenTokens)
	}
	fmt.Fprintln(w)
	for i := range r.Bounds {
		if b := &r.Bounds[i]; b.Verdict() != "" {
			fmt.Fprintf(w, "%s: %s (%s), %s\n", b.Name, b.Value(), b.Must(), b.Verdict())
		}
	}
	fmt.Fprintln(w)
	for _, c := range r.Checks {
		verdict := "kept"
		if !c.OK {
			verdict = "BROKEN"
		}
		fmt.Fprintf(w, "%s %s, by %s: %s\n", c.Guarantee, verdict, c.By, c.Text)
	}
	return nil
}
