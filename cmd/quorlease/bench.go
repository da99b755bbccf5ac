package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/cmd/quorlease/benches"
)

func newBench(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure, break and check a cluster"}
	cmd.AddCommand(benches.Commands(&benches.App{
		CheckFormat: a.checkFormat,
		JSON:        func() bool { return a.format == formatJSON },
		Write:       a.write,
		Timeout:     func() time.Duration { return a.timeout },
		Endpoints: func() []string {
			if !cmd.Root().PersistentFlags().Lookup("endpoints").Changed {
				return nil
			}
			return a.endpoints
		},
		Tune:    func() { tuneCollector(a.lookupEnv) },
		Version: thisBuild().Version,
		Stderr:  a.stderr,
	})...)
	return cmd
}
