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
	// HTML is one file with all that it needs; SARIF is version 2.1.0.
	HTML  Format = "html"
	SARIF Format = "sarif"
)

// Formats lists the names that ParseFormat takes.
func Formats() []string {
	return []string{string(Text), string(Markdown), string(JSON), string(HTML), string(SARIF)}
}

// ParseFormat returns the format of that name.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case Text, Markdown, JSON, HTML, SARIF:
		return f, nil
	}
	return "", fmt.Errorf("unknown format %q: it is one of %v", name, Formats())
}

// Options says how a report is written.
type Options struct {
	Format Format
	// Color asks for ANSI colours; only the text format has any.
	Color bool
	// Width is that of the terminal in characters, for the text format; 0 if it is
	// not for one.
	Width int
	// ShowSecrets leaves passwords, tokens and keys as they are.
	ShowSecrets bool
	// Redact is the text that is replaced in addition to secrets.
	Redact *Redaction
	// Version is the tool's own, for the JSON document and the text's title.
	Version string
	// SourceRoot is an absolute directory. SARIF names the files below it relative to it; if it is
	// empty, all files are named by their absolute paths.
	SourceRoot string
}

// Write writes the report of c, which must pass its own Check.
func Write(w io.Writer, c *evidence.Case, opts Options) error {
	if err := c.Check(); err != nil {
		return fmt.Errorf("reports: the case contradicts itself: %w", err)
	}
	open := c
	c, opts.SourceRoot = edited(c, &opts)
	if opts.Format == JSON {
		return writeJSON(w, Document{SchemaVersion: SchemaVersion, Tool: opts.tool(), Headline: headlineOf(c).document(), Case: c})
	}
	c = withRefused(c)
	switch opts.Format {
	case HTML:
		return writeHTML(w, htmlCase(c, opts))
	case SARIF:
		return writeJSON(w, sarifCase(c, open, opts))
	}
	return writeBlocks(w, layout(copied(c, plainNaming), opts), opts)
}

// WriteHeap writes the summary of a heap, which must pass its own Check.
func WriteHeap(w io.Writer, h *evidence.Heap, opts Options) error {
	if err := h.Check(); err != nil {
		return fmt.Errorf("reports: the heap's summary contradicts itself: %w", err)
	}
	h, opts.SourceRoot = edited(h, &opts)
	switch opts.Format {
	case JSON:
		return writeJSON(w, HeapDocument{SchemaVersion: HeapSchemaVersion, Tool: opts.tool(), Heap: h})
	case HTML:
		return writeHTML(w, htmlHeap(h, opts))
	case SARIF:
		return writeJSON(w, sarifHeap(h, opts))
	}
	return writeBlocks(w, heapLayout(copied(h, plainNaming), opts), opts)
}

// edited returns a document and the root of its sources without the text that must not be shown.
func edited[T any](v *T, o *Options) (*T, string) {
	if o.ShowSecrets {
		e := o.Redact.over(asIs)
		return copied(v, e), e.text(o.SourceRoot)
	}
	out, e := withoutSecrets(v, o.Redact)
	return out, e.text(o.SourceRoot)
}

func (o *Options) tool() Tool { return Tool{Name: "diagnose", Version: o.Version} }

func writeBlocks(w io.Writer, blocks []block, opts Options) error {
	if opts.Format == Markdown {
		return writeMarkdown(w, blocks)
	}
	return writeText(w, blocks, opts)
}
