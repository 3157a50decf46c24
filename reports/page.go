package reports

import (
	"html/template"
	"io"
)

// Page is a page of another package in the style of the reports: one file without anything from
// elsewhere.
type Page struct {
	Title, Version string
	// Lead is the line on top; Alarm shows it as a failure.
	Lead  string
	Alarm bool
	// Style is added to that of the reports.
	Style string
	Parts []PagePart
}

// PagePart is a part that the table of contents names. A Folded one is closed until
// the reader opens it.
type PagePart struct {
	ID, Title string
	Folded    bool
	// Body was made by html/template, from strings that went through Span: nothing in
	// it is escaped again.
	Body template.HTML
}

// WritePage writes a page.
func WritePage(w io.Writer, p Page) error {
	class := strong
	if p.Alarm {
		class = alarm
	}
	page := &htmlPage{Title: Clean(p.Title), Version: p.Version, Style: template.CSS(p.Style), Lead: htmlLineOf(say(class, p.Lead))}
	for _, x := range p.Parts {
		page.Sections = append(page.Sections, &htmlSection{ID: x.ID, Title: Clean(x.Title), Short: Clean(x.Title), Folded: x.Folded, Nodes: []htmlNode{{Body: x.Body}}})
	}
	return writeHTML(w, page)
}

// Style is the style sheet of the reports, for pages that are more than a Page.
func Style() string { return htmlStyle }

// SourceHash is a style or a script as a policy names it (CSP level 3, 2.3.1).
func SourceHash(text string) string { return sourceHash(text) }

// Span makes text from the target fit for a terminal, for one line, and for a reader:
// it is clean, and cut after 2,000 bytes, which it says.
func Span(text string) string { return cutSpan(Clean(text)) }
