package reports

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/reports/secrets"
)

const redactedMark = "[redacted]"

// redacting returns the edits that replace the secrets that f finds.
func redacting(f *secrets.Finder) edits {
	replace := func(text string, spans []secrets.Span) string { return secrets.Replace(text, spans, redactedMark) }
	return edits{
		text: func(text string) string { return replace(text, f.Text(text)) },
		named: func(name string) func(string) string {
			find := f.Value(name)
			if find == nil {
				return nil
			}
			return func(text string) string { return replace(text, find(text)) }
		},
		source: func(text string) string { return replace(text, secrets.Lines(text, f.Source(text))) },
		damage: func(d evidence.Damage) evidence.Damage { return hideDamage(d, secretBytes(f)) },
		bytes:  secretBytes(f),
	}
}

// withoutSecrets returns a copy of a document without secrets and without the text that r names. A
// secret that is found in one part is replaced in all others, so the whole document is read first.
func withoutSecrets[T any](v *T, r *Redaction) (*T, edits) {
	f := &secrets.Finder{}
	e := redacting(f)
	copied(v, e)
	e = r.over(e)
	return copied(v, e), e
}

// sourceText joins lines of source to one text, for secrets of several lines.
func sourceText(lines []evidence.SourceLine) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.ReplaceAll(l.Text, "\n", " "))
	}
	return b.String()
}

// editSource edits the lines of a source as one text.
func (e *edits) editSource(lines []evidence.SourceLine) []evidence.SourceLine {
	edited := strings.Split(e.source(sourceText(lines)), "\n")
	out := slices.Clone(lines)
	for i := range out {
		if len(edited) == len(lines) {
			out[i].Text = edited[i]
		} else { // the replacement has line feeds
			out[i].Text = e.source(out[i].Text)
		}
	}
	return out
}
