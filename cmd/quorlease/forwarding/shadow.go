package forwarding

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/client/gateway/shadow"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

// reportMax is the most that a report has, in bytes: a thousand rows with the longest names are less.
const reportMax = 4 << 20

// shadow answers what a shadow has found, as JSON or in the form that is asked for.
func (r *running) shadow(w http.ResponseWriter, q *http.Request) {
	format := q.URL.Query().Get("format")
	if format == "" {
		format = "json"
	}
	var page bytes.Buffer
	if err := writeShadow(&page, format, r.gateway.Shadow()); err != nil {
		http.Error(w, "format: "+err.Error(), http.StatusBadRequest)
		return
	}
	content := map[string]string{"json": "application/json", "csv": "text/csv; charset=utf-8"}[format]
	if content == "" {
		content = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", content)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(page.Bytes())
}

// shadowColumns are those of the rows.
const shadowColumns = "OUTCOME REASON CLIENT CLASS COUNT REFUSED-THERE-TOO WAIT-MEAN WAIT-MAX"

// writeShadow writes a report as text, json or csv.
func writeShadow(w io.Writer, format string, r shadow.Report) error {
	switch format {
	case "json":
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(r)
	case "csv":
		out := csv.NewWriter(w)
		// The writer behind it is a buffer, which does not fail.
		_ = out.Write(strings.Fields(strings.ToLower(strings.ReplaceAll(shadowColumns, "-", "_"))))
		for _, row := range shadowRows(r, false) {
			_ = out.Write(row)
		}
		out.Flush()
		return nil
	case "text":
		state := "forwards everything, and refuses nobody"
		if !r.On {
			state = "is not one now"
		}
		fmt.Fprintf(w, "shadow     %s\nsince      %s\nrequests   %d\npassed     %d, of which %d were refused there\n"+
			"refused    %d\nwaited     %d\nundecided  %d\n", state, r.Since.UTC().Format(time.RFC3339),
			r.Requests, r.Passed, r.RefusedThere, r.Refused, r.Waited, r.Undecided)
		if len(r.Rows) > 0 {
			fmt.Fprintln(w)
			show.Table(w, shadowColumns, shadowRows(r, true))
		}
		return nil
	default:
		return fmt.Errorf("%q is none of text, json, csv", format)
	}
}

// shadowRows are the rows for people, or else for spreadsheets, where waits are milliseconds.
func shadowRows(r shadow.Report, people bool) (rows [][]string) {
	for _, row := range r.Rows {
		client, class := show.Harmless(row.Client), row.Class
		mean, longest := strconv.FormatInt(row.WaitMeanMs, 10), strconv.FormatInt(row.WaitMaxMs, 10)
		if people {
			client, class = show.Dash(row.Client), show.Dash(row.Class)
			mean = show.Time(time.Duration(row.WaitMeanMs) * time.Millisecond)
			longest = show.Time(time.Duration(row.WaitMaxMs) * time.Millisecond)
		}
		rows = append(rows, []string{
			row.Outcome, row.Reason, client, class, show.Number(row.Count), show.Number(row.RefusedThere), mean, longest,
		})
	}
	return rows
}

// ReportCommand asks a gateway that is a shadow what it has found. format and timeout are those of
// the command line when it runs, and write is where the answer goes.
func ReportCommand(format *string, timeout *time.Duration, write func([]byte) error) *cobra.Command {
	var admin string
	cmd := &cobra.Command{
		Use: "report", Short: "Show what a shadow would have refused",
		Long: `Ask a gateway that is a shadow (gateway --shadow) what it would have refused, why and
to whom, and for how long it would have made requests wait. REFUSED-THERE-TOO is what
the limiter behind it has refused of those, with 429 or 503. In -o csv waits are
milliseconds. (others) is what is beyond a thousand rows.`,
		Example: `  quorlease gateway report
  quorlease gateway report --admin http://127.0.0.1:7402 -o csv`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), *timeout)
			defer cancel()
			report, err := askShadow(ctx, admin)
			if err != nil {
				return err
			}
			var page bytes.Buffer
			if err := writeShadow(&page, *format, report); err != nil {
				return exit.Usagef("--output %w", err)
			}
			return write(page.Bytes())
		},
	}
	cmd.Flags().StringVar(&admin, "admin", "http://127.0.0.1:7402", "`URL` of the gateway's --admin")
	return cmd
}

// askShadow asks a gateway for its report.
func askShadow(ctx context.Context, admin string) (report shadow.Report, err error) {
	where, err := url.Parse(admin)
	if err != nil || where.Host == "" || where.Scheme != "http" && where.Scheme != "https" {
		return report, exit.Usagef("--admin %q is no http or https address", admin)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.JoinPath("shadow").String(), nil)
	if err != nil {
		return report, err
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return report, fmt.Errorf("ask the gateway: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return report, fmt.Errorf("ask the gateway: %s answers %s", where.Redacted(), answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, reportMax)).Decode(&report); err != nil {
		return report, errors.Join(errors.New("read the gateway's answer"), err)
	}
	return report, nil
}
