package file_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/quorlease/quorlease/client/gateway/file"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

// keys are files of whatever name the pages use, each with a key that was drawn.
func keys() file.Secrets {
	drawn := strings.Repeat("0123456789abcdef", 2)
	return file.Secrets{
		ReadFile:  func(name string) ([]byte, error) { return []byte(name + "-" + drawn + "\n"), nil },
		LookupEnv: func(string) (string, bool) { return drawn, true },
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func blocksOf(t *testing.T, page string) (blocks []string) {
	t.Helper()
	data, err := os.ReadFile("../../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range yamlBlock.FindAllStringSubmatch(string(data), -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

// The reference's own file is one that is taken, and each of its keys is explained.
func TestReferenceIsTrue(t *testing.T) {
	t.Parallel()
	blocks := blocksOf(t, "reference/gateway-file.md")
	if len(blocks) != 1 {
		t.Fatalf("%d files in the page, want 1", len(blocks))
	}
	sample := blocks[0]
	if _, err := file.Parse("gateway.yaml", []byte(sample), keys()); err != nil {
		t.Errorf("the page's file: %v", err)
	}
	data, err := os.ReadFile("../../../docs/reference/gateway-file.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	// An unknown field makes the error list those that are known.
	for _, wrong := range []string{
		"x: 1", "tls: {x: 1}", "deployments: [{x: 1}]", "deployments: [{per_minute: {x: 1}}]",
		"deployments: [{source: {x: 1}}]", "classes: [{x: 1}]", "clients: [{x: 1}]", "identify: {x: 1}",
		"retry_tokens: {x: 1}", "attempts: {x: 1}", "attempts: {markers: [{x: 1}]}", "circuit: {x: 1}",
		"circuit: {shared: {x: 1}}", "pause: {x: 1}", "idempotency: {x: 1}",
	} {
		_, err := file.Parse("g.yaml", []byte(wrong), keys())
		if err == nil {
			t.Fatal(wrong)
		}
		_, list, found := strings.Cut(err.Error(), "known are ")
		if !found {
			t.Fatalf("%s: %v", wrong, err)
		}
		list, _, _ = strings.Cut(list, "\n")
		for key := range strings.SplitSeq(list, ", ") {
			if !strings.Contains(page, "`"+key+"`") {
				t.Errorf("%s is not explained", key)
			}
			if !strings.Contains(sample, key+":") {
				t.Errorf("%s is not in the page's file", key)
			}
		}
	}
}

// Every file that the guide shows is one that is taken, without a doubt, and there is one for
// each provider.
func TestGuideIsTrue(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, block := range blocksOf(t, "operating/gateway.md") {
		if strings.Contains(block, "\nlimits:") {
			continue
		}
		f, err := file.Parse("gateway.yaml", []byte(block), keys())
		if err != nil {
			t.Errorf("%v\n%s", err, block)
			continue
		}
		if len(f.Warnings) > 0 {
			t.Errorf("%q\n%s", f.Warnings, block)
		}
		for i := range f.Gateway.Deployments {
			seen[f.Gateway.Deployments[i].Provider.Name] = true
		}
	}
	for _, name := range []string{"openai", "azure", "anthropic", "compatible", "gemini", "vertex", "bedrock"} {
		if !seen[name] {
			t.Errorf("no file for %s", name)
		}
	}
}

// What the guide says of idempotency keys is what is known of each provider.
func TestGuideOfKeysIsTrue(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/operating/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range provider.Names() {
		table, err := provider.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		honours := map[bool]string{true: "yes", false: "no"}[table.Keys.Honoured]
		if table.Keys.Seen.How == provider.Chosen {
			honours = "not known"
		}
		if row := "| `" + name + "` | " + honours + " | " + table.Keys.Seen.On; !strings.Contains(string(page), row) {
			t.Errorf("the guide lacks %q", row)
		}
	}
}
