package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"diagnose/evidence"
)

//go:generate go run diagnose/internal/schemagen -document case -out schema/case-2.json
//go:generate go run diagnose/internal/schemagen -document heap -out schema/heap-1.json

// SchemaVersion is the version of the JSON document. Its first number changes when a reader of the
// old form could misread the new one, the second when something is added. schema/case-2.json
// describes it.
const SchemaVersion = "2.21"

// HeapSchemaVersion is the same for the summary of a heap, which
// schema/heap-1.json describes.
const HeapSchemaVersion = "1.5"

// Document is the JSON form of a report.
type Document struct {
	// SchemaVersion is MAJOR.MINOR.
	SchemaVersion string `json:"schema_version"`
	Tool          Tool   `json:"tool"`
	// Headline is the first line of the other formats.
	Headline Headline `json:"headline"`
	// Case is the failure.
	Case *evidence.Case `json:"case"`
}

// Headline says what made the program fail, if that is proved, or else how it
// failed.
type Headline struct {
	// Text is a sentence without a final stop, Proof its level.
	Text  string         `json:"text"`
	Proof evidence.Proof `json:"proof"`
	// OfCause says that Text is that of the first cause, and not of the failure.
	OfCause bool `json:"of_cause"`
}

// HeapDocument is the JSON form of a heap's summary.
type HeapDocument struct {
	// SchemaVersion is MAJOR.MINOR.
	SchemaVersion string `json:"schema_version"`
	Tool          Tool   `json:"tool"`
	// Heap is the summary.
	Heap *evidence.Heap `json:"heap"`
}

// Tool is the program that wrote a document.
type Tool struct {
	// Name is "diagnose"; Version that of its build.
	Name    string `json:"name"`
	Version string `json:"version"`
}

// WriteJSON writes a document as the reports' documents are written: no string in it acts on a
// terminal.
func WriteJSON(w io.Writer, document any) error { return writeJSON(w, document) }

func writeJSON(w io.Writer, document any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(document); err != nil {
		return err
	}
	_, err := w.Write(escapeHostile(text.Bytes()))
	return err
}

// escapeHostile writes the runes that could act on a terminal as JSON escapes.
// encoding/json does so for those below U+0020 only; outside of strings it
// writes none of the others.
func escapeHostile(text []byte) []byte {
	escapable := func(r rune) bool { return r != '\n' && hostile(r) }
	var out []byte
	for {
		i := bytes.IndexFunc(text, escapable)
		if i < 0 {
			return append(out, text...)
		}
		r, size := utf8.DecodeRune(text[i:])
		out = append(out, text[:i]...)
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
		text = text[i+size:]
	}
}
