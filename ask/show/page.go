package show

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"

	"diagnose/ask"
	"diagnose/reports"
)

//go:embed html
var pageFiles embed.FS

var pageTemplate = template.Must(template.New("").Funcs(template.FuncMap{"span": reports.Span}).ParseFS(pageFiles, "html/*.tmpl"))

// pageTable is a table of the page.
type pageTable struct {
	Header []string
	Rows   []pageRow
}

type pageRow struct {
	ID    string
	Cells []string
}

// HTML writes the answer as one file that loads nothing from elsewhere. Text from the recording is escaped and cut.
func HTML(w io.Writer, a *ask.Answer, version string) error {
	style, err := pageFiles.ReadFile("html/answer.css")
	if err != nil {
		return err
	}
	p := &pager{}
	t := tableOf(a)
	if list := warnings(a); len(list) > 0 {
		p.part("warnings", "Before all else", "lines", list)
	}
	if line := timelineOf(a, t); line != nil {
		p.part("timeline", "Timeline", "timeline", line)
	}
	if len(t.rows) > 0 {
		p.part("rows", "Rows", "rows", pageTableOf(t))
	}
	if a.Form == ask.FormLastWrite && len(a.Writes) > 0 && a.Writes[0].Stack != nil {
		var frames []string
		for _, f := range a.Writes[0].Stack.Frames {
			frames = append(frames, fmt.Sprintf("#%d %s", f.Index, siteText(&f.Site)))
		}
		p.part("stack", "Stack", "lines", frames)
	}
	if list := notes(a); len(list) > 0 {
		p.part("subject", "What it is", "lines", list)
	}
	p.part("coverage", "What the answer covers", "lines", coverage(a))
	if p.err != nil {
		return fmt.Errorf("ask: HTML: %w", p.err)
	}
	return reports.WritePage(w, reports.Page{Title: "diagnose ask: " + Headline(a), Version: version, Lead: Headline(a), Style: string(style), Parts: p.parts})
}

func pageTableOf(t *table) *pageTable {
	x := &pageTable{}
	for _, c := range t.columns {
		x.Header = append(x.Header, c.Name)
	}
	for i, cells := range t.rows {
		x.Rows = append(x.Rows, pageRow{ID: fmt.Sprintf("row-%d", i+1), Cells: cells})
	}
	return x
}

// pager makes the parts of a page.
type pager struct {
	parts []reports.PagePart
	err   error
}

func (p *pager) part(id, title, name string, data any) {
	var body bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&body, name, data); err != nil && p.err == nil {
		p.err = err
	}
	p.parts = append(p.parts, reports.PagePart{ID: id, Title: title, Body: template.HTML(body.String())})
}
