package reports

import (
	"fmt"
	"io"

	"diagnose/evidence"
)

// Format is an output format.
type Format string

// The output formats.
const (
	Text     Format = "text"
	Markdown Format = "markdown"
	JSON     Format = "json"
)

// Formats lists the names that ParseFormat takes.
func Formats() []string { return []string{string(Text), string(Markdown), string(JSON)} }

// ParseFormat returns the format of that name.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case Text, Markdown, JSON:
		return f, nil
	}
	return "", fmt.Errorf("unknown format %q: it is one of %v", name, Formats())
}

// Options says how a report is written.
type Options struct {
	Format Format
	// Color asks for ANSI colours; only the text format has any.
	Color bool
	// ShowSecrets leaves passwords, tokens and keys as they are.
	ShowSecrets bool
	// Version is the tool's own, for the JSON document and the text's title.
	Version string
}

// Write writes the report of c, which must pass its own Check.
func Write(w io.Writer, c *evidence.Case, opts Options) error {
	if err := c.Check(); err != nil {
		return fmt.Errorf("reports: the case contradicts itself: %w", err)
	}
	if opts.ShowSecrets {
		c = copied(c, edits{unchanged, unchanged, unchanged})
	} else {
		c = redacted(c)
	}
	switch opts.Format {
	case JSON:
		return writeJSON(w, c, opts)
	case Markdown:
		return writeMarkdown(w, layout(c, opts))
	}
	return writeText(w, layout(c, opts), opts.Color)
}
