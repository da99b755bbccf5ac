// Package page holds what a measure of scaling came to, judges it by its bounds, and
// shows it: as text, as JSON, and as one page of HTML with plots that needs nothing else.
package page
