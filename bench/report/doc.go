// Package report shows what a contention run came to: as text, as JSON, and as one
// page of HTML with plots that needs nothing else.
package report
