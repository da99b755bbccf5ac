package forwarding

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// handler writes what libraries say to the logger of the command.
type handler struct {
	logger hclog.Logger
	// group stands before the names of attributes.
	group string
}

var levels = []struct {
	from slog.Level
	to   hclog.Level
}{
	{slog.LevelError, hclog.Error},
	{slog.LevelWarn, hclog.Warn},
	{slog.LevelInfo, hclog.Info},
	{slog.LevelDebug, hclog.Debug},
}

func levelOf(l slog.Level) hclog.Level {
	for _, row := range levels {
		if l >= row.from {
			return row.to
		}
	}
	return hclog.Trace
}

// Enabled says whether anybody would read it.
func (h *handler) Enabled(_ context.Context, l slog.Level) bool {
	return levelOf(l) >= h.logger.GetLevel()
}

// Handle writes one line.
func (h *handler) Handle(_ context.Context, record slog.Record) error {
	pairs := make([]any, 0, 2*record.NumAttrs())
	record.Attrs(func(a slog.Attr) bool {
		pairs = h.pair(pairs, a)
		return true
	})
	h.logger.Log(levelOf(record.Level), record.Message, pairs...)
	return nil
}

func (h *handler) pair(pairs []any, a slog.Attr) []any {
	value := a.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		return append(pairs, h.group+a.Key, value.Any())
	}
	inside := handler{h.logger, h.group + a.Key + "."}
	if a.Key == "" {
		inside.group = h.group
	}
	for _, one := range value.Group() {
		pairs = inside.pair(pairs, one)
	}
	return pairs
}

// WithAttrs is the same with attributes on each line.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var pairs []any
	for _, a := range attrs {
		pairs = h.pair(pairs, a)
	}
	return &handler{h.logger.With(pairs...), h.group}
}

// WithGroup is the same with a name before those of attributes.
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &handler{h.logger, h.group + name + "."}
}
