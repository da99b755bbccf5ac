package told

import (
	"context"
	"testing"

	"github.com/quorlease/quorlease/client/feedback"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

// quiet takes everything at once.
type quiet struct{}

func (quiet) Feedback(_ context.Context, answers ...feedback.Answer) ([]feedback.Controlled, error) {
	return make([]feedback.Controlled, len(answers)), nil
}

// BenchmarkTell is what an answer costs who has it.
func BenchmarkTell(b *testing.B) {
	work := About{
		Tenant: "tenant-1", Deployment: "openai-eu",
		Attributes: map[string]string{"tenant": "tenant-1", "deployment": "openai-eu", "model": "gpt-4o", "region": "eu"},
	}
	for name, v := range map[string]*provider.Verdict{
		"throttled": throttled(22 * second), "headers": left(100), "nothing": {Class: provider.Other},
	} {
		b.Run(name, func(b *testing.B) {
			teller, err := New(Config{Authority: quiet{}})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				teller.Tell(work, v)
			}
			_ = teller.Close()
		})
	}
	b.Run("learn", func(b *testing.B) {
		teller, err := New(Config{Authority: quiet{}})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			teller.Learn(0, tenant("a"))
		}
		_ = teller.Close()
	})
}
