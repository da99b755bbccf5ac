// Package dashboard is the page that every node serves: a picture of the cluster
// and of who storms, for the person on call.
//
// The files in static are written by hand and served as they are. They ask for
// nothing but themselves and the stream of pictures (GET /v1/overview:watch) of
// the node that served them. All that they show was sent by others; it becomes
// text and never markup, which Policy makes the browser hold them to.
package dashboard

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"slices"
	"time"
)

// Policy is the Content-Security-Policy of the page: scripts and styles from
// this node only and none in the markup, no string becomes markup or code, and
// nobody frames it.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

const (
	html   = "text/html; charset=utf-8"
	style  = "text/css; charset=utf-8"
	script = "text/javascript; charset=utf-8"
	image  = "image/svg+xml"
)

//go:embed static/index.html
var index []byte

//go:embed static/style.css
var styleCSS []byte

//go:embed static/icon.svg
var iconSVG []byte

//go:embed static/app.js
var appJS []byte

//go:embed static/burn.js
var burnJS []byte

//go:embed static/chart.js
var chartJS []byte

//go:embed static/cluster.js
var clusterJS []byte

//go:embed static/dom.js
var domJS []byte

//go:embed static/feed.js
var feedJS []byte

//go:embed static/format.js
var formatJS []byte

//go:embed static/limits.js
var limitsJS []byte

//go:embed static/offenders.js
var offendersJS []byte

//go:embed static/table.js
var tableJS []byte

var files = []File{
	file("/", html, index),
	file("/assets/style.css", style, styleCSS),
	file("/assets/icon.svg", image, iconSVG),
	file("/assets/app.js", script, appJS),
	file("/assets/burn.js", script, burnJS),
	file("/assets/chart.js", script, chartJS),
	file("/assets/cluster.js", script, clusterJS),
	file("/assets/dom.js", script, domJS),
	file("/assets/feed.js", script, feedJS),
	file("/assets/format.js", script, formatJS),
	file("/assets/limits.js", script, limitsJS),
	file("/assets/offenders.js", script, offendersJS),
	file("/assets/table.js", script, tableJS),
}

// File is one file of the page. It is safe for concurrent use.
type File struct {
	// Path is where it is served.
	Path string

	kind, tag string
	body      []byte
}

// Files returns all of them, the page itself first.
func Files() []File { return slices.Clone(files) }

func file(path, kind string, body []byte) File {
	sum := sha256.Sum256(body)
	return File{Path: path, kind: kind, tag: `"` + hex.EncodeToString(sum[:12]) + `"`, body: body}
}

// ServeHTTP answers GET and HEAD. A browser keeps the file and asks each time
// whether it is still the same, so that a new version is seen at once.
func (f File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", f.kind)
	header.Set("ETag", f.tag)
	header.Set("Cache-Control", "no-cache")
	header.Set("Content-Security-Policy", Policy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
}
