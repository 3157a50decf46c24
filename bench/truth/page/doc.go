// Package page writes the table of docs/truth.md.
package page
