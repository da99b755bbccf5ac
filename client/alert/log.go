package alert

import (
	"context"
	"log/slog"
	"maps"
	"slices"
)

// Log returns a sink that writes one line for the beginning of an incident,
// "ALERT", and one for its end, "RESOLVED", with the rest as attributes. A
// critical beginning is logged as an error, any other as a warning, an end as
// information. A nil logger is slog's default.
func Log(logger *slog.Logger) Sink {
	if logger == nil {
		logger = slog.Default()
	}
	return logSink{logger}
}

type logSink struct{ logger *slog.Logger }

// String names the sink in errors.
func (logSink) String() string { return "log" }

func (s logSink) Send(ctx context.Context, a Alert) error {
	level, message := slog.LevelWarn, "ALERT"
	if a.Severity == Critical {
		level = slog.LevelError
	}
	if a.Resolved {
		level, message = slog.LevelInfo, "RESOLVED"
	}
	attrs := []slog.Attr{
		slog.String("kind", a.Kind), slog.String("name", a.Name), slog.String("id", a.ID),
		slog.String("severity", a.Severity.String()), slog.String("text", a.Text),
		slog.Time("started", a.Started),
	}
	if a.Resolved {
		attrs = append(attrs, slog.Duration("took", a.Ended.Sub(a.Started)))
	}
	attrs = append(attrs, group("labels", a.Labels)...)
	attrs = append(attrs, group("values", a.Values)...)
	s.logger.LogAttrs(ctx, level, message, attrs...)
	return nil
}

// group is a map as attributes under a name, in order; nothing where it is empty.
func group(name string, texts map[string]string) []slog.Attr {
	if len(texts) == 0 {
		return nil
	}
	attrs := make([]slog.Attr, 0, len(texts))
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		attrs = append(attrs, slog.String(key, texts[key]))
	}
	return []slog.Attr{slog.GroupAttrs(name, attrs...)}
}
