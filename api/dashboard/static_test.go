package dashboard_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorlease/quorlease/api/dashboard"
)

// sizeMax is what the whole page may have, in bytes.
const sizeMax = 200 << 10

// sources are the files of the page by name.
func sources(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS("static"), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join("static", path))
		found[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func serve(t *testing.T, file dashboard.File, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, file.Path, http.NoBody)
	if change != nil {
		change(request)
	}
	recorder := httptest.NewRecorder()
	file.ServeHTTP(recorder, request)
	return recorder
}

func TestEveryFileIsServed(t *testing.T) {
	t.Parallel()
	files := sources(t)
	total := 0
	for _, file := range dashboard.Files() {
		name := strings.TrimPrefix(file.Path, "/assets/")
		if file.Path == "/" {
			name = "index.html"
		}
		answer := serve(t, file, nil)
		if got, want := answer.Body.String(), files[name]; got != want || want == "" {
			t.Errorf("%s: %d bytes, want the %d of %s", file.Path, len(got), len(want), name)
		}
		total += len(files[name])
		delete(files, name)
		for header, want := range map[string]string{
			"Content-Security-Policy": dashboard.Policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache",
			"Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer",
		} {
			if got := answer.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", file.Path, header, got, want)
			}
		}
	}
	if len(files) > 0 {
		t.Errorf("not served: %v", files)
	}
	t.Logf("%d bytes in all", total)
	if total > sizeMax {
		t.Errorf("the page has %d bytes, at most %d", total, sizeMax)
	}
}

func TestFilesAreKept(t *testing.T) {
	t.Parallel()
	for _, file := range dashboard.Files() {
		tag := serve(t, file, nil).Header().Get("ETag")
		again := serve(t, file, func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
		if tag == "" || again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s with ETag %q: %d and %d bytes, want 304 and none", file.Path, tag, again.Code, again.Body.Len())
		}
		if got := again.Header().Get("Content-Security-Policy"); got != dashboard.Policy {
			t.Errorf("%s, not modified: policy %q", file.Path, got)
		}
		head := serve(t, file, func(r *http.Request) { r.Method = http.MethodHead })
		if head.Code != http.StatusOK || head.Body.Len() > 0 || head.Header().Get("ETag") != tag {
			t.Errorf("HEAD %s: %d, %d bytes, ETag %q", file.Path, head.Code, head.Body.Len(), head.Header().Get("ETag"))
		}
	}
}

// What becomes markup or code, and what comes from elsewhere.
var forbidden = regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|` +
	`new Function|setTimeout\(['"]|` +
	`javascript:|srcdoc|createContextualFragment|DOMParser|setHTML|\son[a-z]+=|\sstyle=|<style|` +
	`https?://|url\(|@import|['"(]//|import\(|localStorage|document\.cookie`)

// svgNames is the name of a name space; nothing is fetched from there.
const svgNames = "http://www.w3.org/2000/svg"

func TestNothingBecomesMarkupOrComesFromElsewhere(t *testing.T) {
	t.Parallel()
	for name, text := range sources(t) {
		for _, found := range forbidden.FindAllString(strings.ReplaceAll(text, svgNames, ""), -1) {
			t.Errorf("%s has %q", name, found)
		}
	}
	page := sources(t)["index.html"]
	if scripts := regexp.MustCompile(`<script[^>]*>[^<]`).FindString(page); scripts != "" {
		t.Errorf("a script in the page: %s", scripts)
	}
}

func TestIDsExistOnce(t *testing.T) {
	t.Parallel()
	files := sources(t)
	var ids []string
	for _, match := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(files["index.html"], -1) {
		if slices.Contains(ids, match[1]) {
			t.Errorf("%s is there twice", match[1])
		}
		ids = append(ids, match[1])
	}
	used := 0
	for name, text := range files {
		for _, match := range regexp.MustCompile(`(?:byId|note|fact)\('([^']+)'`).FindAllStringSubmatch(text, -1) {
			used++
			if !slices.Contains(ids, match[1]) {
				t.Errorf("%s looks for %s, which the page does not have", name, match[1])
			}
		}
	}
	pointers := regexp.MustCompile(`(?:href="#|aria-labelledby="|for=")([^"]+)"`)
	for _, match := range pointers.FindAllStringSubmatch(files["index.html"], -1) {
		if !slices.Contains(ids, match[1]) {
			t.Errorf("the page points at %s, which it does not have", match[1])
		}
	}
	if used < 20 {
		t.Errorf("only %d ids are looked for: the check is blind", used)
	}
	columns := regexp.MustCompile(`data-column="([^"]+)"`).FindAllStringSubmatch(files["index.html"], -1)
	for _, match := range columns {
		if !strings.Contains(files["offenders.js"]+files["limits.js"]+files["cluster.js"], "id: '"+match[1]+"'") {
			t.Errorf("no table has a column %s", match[1])
		}
	}
}
