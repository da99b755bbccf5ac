// Package sheet shows what one or several measures came to: as text with one table of
// all figures at its end, as one page of HTML with the figures on top that needs nothing
// else, and as tables of Markdown for a document.
package sheet
