package reports

import (
	"encoding/json"
	"io"

	"diagnose/evidence"
)

//go:generate go run diagnose/internal/schemagen -out schema/case-1.json

// SchemaVersion is the version of the JSON document. Its first number changes
// when a reader of the old form could misread the new one, the second when
// something is added. schema/case-1.json describes it.
const SchemaVersion = "1.0"

// Document is the JSON form of a report.
type Document struct {
	// SchemaVersion is MAJOR.MINOR.
	SchemaVersion string `json:"schema_version"`
	Tool          Tool   `json:"tool"`
	// Case is the failure.
	Case *evidence.Case `json:"case"`
}

// Tool is the program that wrote a document.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func writeJSON(w io.Writer, c *evidence.Case, opts Options) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(Document{
		SchemaVersion: SchemaVersion,
		Tool:          Tool{Name: "diagnose", Version: opts.Version},
		Case:          c,
	})
}
