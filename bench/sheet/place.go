package sheet

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Place is where and when something was measured. Its fields are those of the settings
// of every result.
type Place struct {
	Date string `json:"date"`
	// Machine is the processor's name, empty where the kernel does not say it.
	Machine    string `json:"machine"`
	Processors int    `json:"processors"`
	Platform   string `json:"platform"`
}

// Here is this machine, today.
func Here() Place {
	return Place{
		Date: time.Now().Format(time.DateOnly), Machine: machine(),
		Processors: runtime.NumCPU(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

func machine() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// text is the place in a line, with the program's version.
func (p *Place) text(version string) string {
	machine := p.Machine
	if machine != "" {
		machine += ", "
	}
	return fmt.Sprintf("%s; %s%d processors for servers and callers together, %s; quorlease %s",
		p.Date, machine, p.Processors, p.Platform, version)
}
