package reports

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"unicode/utf8"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

//go:embed html
var htmlFiles embed.FS

// The page contains its style and script. Its policy names them by their digests, so that nothing
// else in the page can act as style or script, whatever the target wrote into it (CSP level 3,
// 6.7.3.3).
var (
	htmlStyle    = mustAsset("html/report.css")
	htmlScript   = mustAsset("html/report.js")
	htmlTemplate = template.Must(template.New("").Funcs(template.FuncMap{"cut": cutSpan}).ParseFS(htmlFiles, "html/*.tmpl"))
)

// mustAsset returns an embedded file. It is missing only from a build without it.
func mustAsset(name string) string {
	data, err := htmlFiles.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func htmlPolicy(style string) string {
	return "default-src 'none'; script-src '" + sourceHash(htmlScript) + "'; style-src '" + sourceHash(style) +
		"'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
}

func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// maxSpan bounds a piece of text of the page, in bytes: a symbol may have a million characters, and
// the first ones identify it. JSON has them all.
const maxSpan = 2000

func cutSpan(text string) string {
	if len(text) <= maxSpan {
		return text
	}
	end := maxSpan
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s... (%d more bytes in the JSON form)", text[:end], len(text)-end)
}

// htmlPage is the data of the template. It has exported fields because templates see no others.
type htmlPage struct {
	Title    string
	Version  string
	Policy   string
	Style    template.CSS // what a Page adds, before the page is written
	Script   template.JS
	Lead     htmlLine
	Warnings []htmlNode
	Sections []*htmlSection
}

// htmlSection is a part of the page that the table of contents names. A Folded
// one is closed until the reader opens it.
type htmlSection struct {
	ID, Title string
	// Short is the title in the table of contents.
	Short  string
	Folded bool
	Nodes  []htmlNode
}

// htmlNode is one part of a section; one field is set.
type htmlNode struct {
	Heading   string
	Text      htmlLine
	Facts     []htmlFact
	Pre       []htmlLine
	Body      template.HTML // of a Page
	Grid      *htmlGrid
	Source    *htmlSource
	Stack     *htmlStack
	Timelines *htmlTimelines
	Memory    *htmlMemory
}

type htmlLine []htmlSpan

// htmlSpan is a piece of text; Class is that of its style. Link is the id of a part
// of the page.
type htmlSpan struct{ Class, Text, Link string }

type htmlFact struct {
	Name string
	Text htmlLine
}

type htmlGrid struct {
	Header []string
	Rows   [][]string
}

// styleClasses are the classes of the styles in report.css.
var styleClasses = map[style]string{strong: "strong", alarm: "alarm", name: "name", place: "place", faint: "faint", caveat: "caveat"}

func htmlLineOf(l line) htmlLine {
	var list htmlLine
	for _, s := range l {
		if s.text != "" {
			list = append(list, htmlSpan{Class: styleClasses[s.style], Text: s.text})
		}
	}
	return list
}

// htmlNodes returns the nodes of blocks that look the same in every format.
func htmlNodes(blocks []block) []htmlNode {
	var list []htmlNode
	for _, b := range blocks {
		switch b := b.(type) {
		case heading:
			list = append(list, htmlNode{Heading: b.String()})
		case prose:
			list = append(list, htmlNode{Text: htmlLineOf(b.line)})
		case facts:
			if len(b) > 0 {
				list = append(list, htmlNode{Facts: htmlFacts(b)})
			}
		case verbatim:
			var lines []htmlLine
			for _, l := range b {
				lines = append(lines, htmlLineOf(l))
			}
			list = append(list, htmlNode{Pre: lines})
		case grid:
			list = append(list, htmlNode{Grid: &htmlGrid{b.header, b.rows}})
		}
	}
	return list
}

func htmlFacts(f facts) []htmlFact {
	list := make([]htmlFact, len(f))
	for i, x := range f {
		list[i] = htmlFact{x.name, htmlLineOf(x.text)}
	}
	return list
}

// sectionsOf makes sections of blocks. A section begins at each heading.
func sectionsOf(id string, folded bool, blocks []block) []*htmlSection {
	var list []*htmlSection
	for start := 0; start < len(blocks); {
		end := start + 1
		for end < len(blocks) && !isHeading(blocks[end]) {
			end++
		}
		s := &htmlSection{ID: id, Folded: folded}
		if len(list) > 0 {
			s.ID = fmt.Sprintf("%s-%d", id, len(list)+1)
		}
		if h, ok := blocks[start].(heading); ok {
			s.Title, s.Short = h.String(), h.text
			start++
		}
		s.Nodes = htmlNodes(blocks[start:end])
		list = append(list, s)
		start = end
	}
	return list
}

func isHeading(b block) bool {
	_, ok := b.(heading)
	return ok
}

func writeHTML(w io.Writer, page *htmlPage) error {
	style := htmlStyle + string(page.Style)
	page.Policy, page.Style, page.Script = htmlPolicy(style), template.CSS(style), template.JS(htmlScript)
	page.Version = Clean(page.Version)
	if err := htmlTemplate.ExecuteTemplate(w, "report", page); err != nil {
		return fmt.Errorf("reports: HTML: %w", err)
	}
	return nil
}

// htmlHeap is the page of a heap's summary.
func htmlHeap(h *evidence.Heap, opts Options) *htmlPage {
	page := &htmlPage{Title: fmt.Sprintf("%s live in %s", wording.Size(h.LiveBytes), wording.Count(h.LiveObjects, "object")), Version: opts.Version}
	h2 := *h
	h2.Findings = nil // shown with pictures below
	blocks := heapLayout(&h2, opts)
	if p, ok := blocks[0].(prose); ok {
		page.Lead, blocks = htmlLineOf(p.line), blocks[1:]
	}
	for i, s := range sectionsOf("heap", false, blocks) {
		if i == 0 && s.Title == "" {
			s.Title, s.Short = "Summary", "Summary"
		}
		page.Sections = append(page.Sections, s)
	}
	page.Sections = append(page.Sections, htmlFindings("Damage and misuse", h.Findings)...)
	return page
}
