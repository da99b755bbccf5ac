// Package page shows what storms came to: as text, as JSON, as one page of HTML
// and as a picture, each scenario beside what it was before.
package page
