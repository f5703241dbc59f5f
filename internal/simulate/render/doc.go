// Package render shows what a simulation measured to a person: a table, a plot for a terminal, a picture for a document.
// It computes nothing of its own; the same input gives the same bytes.
package render
