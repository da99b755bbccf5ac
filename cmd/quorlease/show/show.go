// Package show writes answers: aligned tables for people, JSON for programs.
package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// jsonOptions are those of the HTTP interface: names of the protocol, 64-bit
// numbers as strings, fields with their defaults.
var jsonOptions = protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}

// JSON is a message on one line, without a line break. The same message gives
// the same bytes in every build: protojson alone varies its white space on
// purpose.
func JSON(m proto.Message) ([]byte, error) {
	raw, err := jsonOptions.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("print the answer: %w", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, fmt.Errorf("print the answer: %w", err)
	}
	return compact.Bytes(), nil
}

// Table writes aligned columns, two spaces between them. Empty cells become a
// dash, so that every line has as many words as the heading.
func Table(w io.Writer, heading string, rows [][]string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(strings.Fields(heading), "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Dash(exit.Printable(cell))
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	// The writer behind it is a buffer, which does not fail.
	_ = tw.Flush()
}

// Dash stands for an empty cell.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Number writes a whole number.
func Number[T int | int64 | uint32 | uint64](n T) string {
	return fmt.Sprint(n)
}

// Count writes how many there are of something whose plural ends in s.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// YesNo writes a truth.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Duration writes a duration as Go does, and nothing for an absent one.
func Duration(d *durationpb.Duration) string {
	if d == nil {
		return ""
	}
	return Time(d.AsDuration())
}

// Time writes a duration as Go does. From a second on what is less than a
// millisecond is left out: it tells nobody anything, and JSON has it.
func Time(d time.Duration) string {
	if d >= time.Second {
		d = d.Truncate(time.Millisecond)
	}
	return d.String()
}

// Wait is the answer to "when": a duration, or never.
func Wait(d *quorleasev1.Denial) string {
	if d.GetNever() {
		return "never"
	}
	return Duration(d.GetRetryAfter())
}

// Rate writes a rate the way a limits file does.
func Rate(r *quorleasev1.Rate) string {
	if r == nil {
		return ""
	}
	return Number(r.GetAmount()) + "/" + interval(r.GetInterval().AsDuration())
}

func interval(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if d >= unit.length && d%unit.length == 0 {
			if n := int64(d / unit.length); n != 1 {
				return Number(n) + unit.name
			}
			return unit.name
		}
	}
	return d.String()
}

// Percent writes hundredths of a percent, with as many decimals as it needs.
func Percent(hundredths int64) string {
	return strconv.FormatFloat(float64(hundredths)/100, 'f', -1, 64) + "%"
}
