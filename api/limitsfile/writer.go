package limitsfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile/written"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// flow writes a mapping on one line, unless it is empty.
func (w *writer) flow(name string, parts []string) {
	if len(parts) > 0 {
		w.always(name, parts)
	}
}

// always is flow for a mapping that says something by being there.
func (w *writer) always(name string, parts []string) {
	w.line("    %s: {%s}", name, strings.Join(parts, ", "))
}

func (w *writer) texts(name string, all map[string]string) {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, written.Word(key)+": "+written.Word(all[key]))
	}
	w.flow(name, parts)
}

func (w *writer) word(name, value string) {
	if value != "" {
		w.line("    %s: %s", name, written.Word(value))
	}
}

func (w *writer) number(name string, n *int64) {
	if n != nil {
		w.line("    %s: %d", name, *n)
	}
}

func (w *writer) share(name string, n *int64) {
	for _, part := range sharePart(name, n) {
		w.line("    %s", part)
	}
}

func (w *writer) duration(name string, d *durationpb.Duration) {
	for _, part := range durationPart(name, d) {
		w.line("    %s", part)
	}
}

// The parts of a mapping: none where there is no value.

func part(name, value string) []string {
	if value == "" {
		return nil
	}
	return []string{name + ": " + written.Word(value)}
}

func sharePart(name string, n *int64) []string {
	if n == nil {
		return nil
	}
	return []string{name + ": " + written.FormatShare(*n)}
}

func durationPart(name string, d *durationpb.Duration) []string {
	if d == nil {
		return nil
	}
	return []string{name + ": " + written.FormatDuration(d.AsDuration())}
}

// numbers is a whole mapping from names to numbers.
func numbers(all map[string]int64) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, fmt.Sprintf("%s: %d", written.Word(key), all[key]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func rateParts(list []*quorleasev1.Dimension) []string {
	var parts []string
	for _, d := range list {
		if r := d.GetRate(); r != nil {
			parts = append(parts, written.Word(d.GetName())+": "+written.FormatRate(r.GetAmount(), r.GetInterval().AsDuration()))
		}
	}
	return parts
}

func sizeParts(list []*quorleasev1.Dimension, s size) []string {
	var parts []string
	for _, d := range list {
		if tokens := *s.field(d); tokens != nil {
			parts = append(parts, fmt.Sprintf("%s: %d", written.Word(d.GetName()), *tokens))
		}
	}
	return parts
}

func mapped[T any](list []T, text func(T) string) []string {
	out := make([]string, len(list))
	for i, one := range list {
		out[i] = text(one)
	}
	return out
}
