// Package deploy_test checks the files that operators start Quorlease with
// against the program, without starting a container.
package deploy_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// composeFile is the part of the Compose specification that compose.yaml uses.
// Decoding is strict, so that a misspelt field is an error and not nothing.
type composeFile struct {
	Name     string             `yaml:"name"`
	Node     service            `yaml:"x-node"`
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
}

type service struct {
	Image           string      `yaml:"image"`
	Build           build       `yaml:"build"`
	Restart         string      `yaml:"restart"`
	StopGracePeriod string      `yaml:"stop_grace_period"`
	ReadOnly        bool        `yaml:"read_only"`
	CapDrop         []string    `yaml:"cap_drop"`
	SecurityOpt     []string    `yaml:"security_opt"`
	Healthcheck     healthcheck `yaml:"healthcheck"`
	Command         []string    `yaml:"command"`
	Ports           []string    `yaml:"ports"`
	Volumes         []string    `yaml:"volumes"`
}

type build struct {
	Context    string `yaml:"context"`
	Dockerfile string `yaml:"dockerfile"`
}

type healthcheck struct {
	Test        []string `yaml:"test"`
	Interval    string   `yaml:"interval"`
	Timeout     string   `yaml:"timeout"`
	Retries     int      `yaml:"retries"`
	StartPeriod string   `yaml:"start_period"`
}

func readCompose(t *testing.T) composeFile {
	t.Helper()
	var file composeFile
	if err := yaml.UnmarshalWithOptions(read(t, "compose/compose.yaml"), &file, yaml.Strict()); err != nil {
		t.Fatalf("compose.yaml: %s", yaml.FormatError(err, false, true))
	}
	return file
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestCompose holds the three services to the same shape: each is itself in
// everything it says of itself, and knows the two others.
func TestCompose(t *testing.T) {
	file := readCompose(t)
	if len(file.Services) != 3 {
		t.Fatalf("%d services, want 3", len(file.Services))
	}
	for name, s := range file.Services {
		flags := flagsOf(s.Command)
		for flag, want := range map[string]string{
			"id": name, "data": "/data", "bootstrap-expect": "3", "insecure": "",
			"advertise-grpc": name + ":7101", "advertise-peer": name + ":7201", "advertise-http": name + ":7301",
			"join": "node1:7201,node2:7201,node3:7201",
		} {
			if got, ok := flags[flag]; !ok || got != want {
				t.Errorf("%s: --%s=%q, want %q", name, flag, got, want)
			}
		}
		if len(s.Volumes) != 1 || s.Volumes[0] != name+":/data" {
			t.Errorf("%s: volumes %q, want its own at /data", name, s.Volumes)
		}
		if _, ok := file.Volumes[name]; !ok {
			t.Errorf("%s: its volume is not declared", name)
		}
		if s.Image == "" || !s.ReadOnly || s.Restart == "" || len(s.Healthcheck.Test) == 0 {
			t.Errorf("%s does not take over what x-node says: %+v", name, s)
		}
		for _, port := range s.Ports {
			host, _, err := net.SplitHostPort(port[:strings.LastIndex(port, ":")])
			if err != nil || !net.ParseIP(host).IsLoopback() {
				t.Errorf("%s: port %s is published beyond loopback, in plaintext", name, port)
			}
		}
		if _, err := os.Stat(filepath.Join("compose", s.Build.Context, s.Build.Dockerfile)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func flagsOf(command []string) map[string]string {
	flags := make(map[string]string)
	for _, arg := range command {
		if name, ok := strings.CutPrefix(arg, "--"); ok {
			name, value, _ := strings.Cut(name, "=")
			flags[name] = value
		}
	}
	return flags
}

// TestComposeFlags asks the program itself for the flags that it knows.
func TestComposeFlags(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "quorlease")
	run(t, "go", "build", "-buildvcs=false", "-o", binary, "../cmd/quorlease")
	file := readCompose(t)
	for name, s := range file.Services {
		known := knownFlags(run(t, binary, s.Command[0], "--help"))
		for flag := range flagsOf(s.Command) {
			if !known[flag] {
				t.Errorf("%s: %s has no flag --%s", name, s.Command[0], flag)
			}
		}
		asked := s.Healthcheck.Test
		if len(asked) < 4 || asked[0] != "CMD" || asked[1] != "/quorlease" {
			t.Errorf("%s: health check %q does not run the binary", name, asked)
			continue
		}
		known = knownFlags(run(t, binary, asked[2], asked[3], "--help"))
		for flag := range flagsOf(asked) {
			if !known[flag] {
				t.Errorf("%s: %s has no flag --%s", name, strings.Join(asked[2:4], " "), flag)
			}
		}
	}
}

var helpFlag = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z][a-z-]*)`)

func knownFlags(help string) map[string]bool {
	flags := make(map[string]bool)
	for _, match := range helpFlag.FindAllStringSubmatch(help, -1) {
		flags[match[1]] = true
	}
	return flags
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
	return string(output)
}

// TestDockerfile reads what no engine is here to build: a static binary, alone,
// run by nobody.
func TestDockerfile(t *testing.T) {
	dockerfile := string(read(t, "Dockerfile"))
	stages := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(dockerfile, -1)
	if len(stages) != 2 || stages[1][1] != "scratch" {
		t.Fatalf("stages %v, want a build stage and scratch", stages)
	}
	version := regexp.MustCompile(`(?m)^go (\S+)`).FindSubmatch(read(t, "../go.mod"))
	if want := "golang:" + string(version[1]); stages[0][1] != want {
		t.Errorf("builds with %s, go.mod says %s", stages[0][1], want)
	}
	_, last, _ := strings.Cut(dockerfile, "FROM scratch")
	for pattern, why := range map[string]string{
		`CGO_ENABLED=0 go build`:                        "scratch has no C library",
		`(?m)^USER [1-9]\d*:[1-9]\d*$`:                  "a number that is not root",
		`(?m)^ENTRYPOINT \["/quorlease"\]$`:             "scratch has no shell",
		`COPY --from=build --chown=65532:65532 .*/data`: "the volume belongs to whoever runs",
	} {
		where := last
		if strings.Contains(pattern, "go build") {
			where = dockerfile
		}
		if !regexp.MustCompile(pattern).MatchString(where) {
			t.Errorf("nothing matches %s: %s", pattern, why)
		}
	}
	if strings.Contains(last, "RUN ") {
		t.Error("RUN in the last stage: scratch has nothing to run it with")
	}
}
