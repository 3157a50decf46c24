// Package score compares a report with the answers that the operator and the sanitizer
// define. It reads the report's typed fields, never its text.
package score
