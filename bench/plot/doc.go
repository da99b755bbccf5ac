// Package plot draws lines over an axis, for pages of HTML and for pictures that
// stand alone: no script, no font, no network.
package plot
