package nightly

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"diagnose/internal/wording"
	"diagnose/reports"
)

//go:embed html
var pageFiles embed.FS

var pageTemplate = template.Must(template.New("").Funcs(template.FuncMap{"span": reports.Span}).ParseFS(pageFiles, "html/*.tmpl"))

// mostRows is the maximum number of rows in a table of the page. The JSON form has all.
const mostRows = 200

// PageOptions say where the reports of a page's causes are.
type PageOptions struct {
	// Reports has for a cluster's digest the address of its report, relative to the page.
	// Missing has why there is none. For a cluster in neither map the page has the command that
	// shows its report.
	Reports, Missing map[string]string
}

// WriteHTML writes the summary as one file that loads nothing from elsewhere. Text from failing
// programs is escaped and cut.
func (s *Summary) WriteHTML(w io.Writer, opts PageOptions) error {
	style, err := pageFiles.ReadFile("html/summary.css")
	if err != nil {
		return err
	}
	p := &pager{s: s, opts: opts, issues: s.issues()}
	page := reports.Page{Title: "diagnose nightly: " + s.headline(), Version: s.Run.Version, Lead: s.headline(), Alarm: s.Alarming(), Style: string(style)}
	p.part("overview", "Overview", false, "overview", p.overview())
	p.causes("new", "New causes", s.New)
	p.causes("back", "Fixed, and back", s.Back)
	p.table("known", "Known causes", s.Known)
	p.table("fixed", "Fixed, and quiet", s.Fixed)
	p.missed("undiagnosed", "Not diagnosed", s.Undiagnosed)
	p.missed("partial", "Diagnosed in part", s.Partial)
	p.tracking(s.Tracking)
	p.alerting(s.Alerting)
	if p.err != nil {
		return fmt.Errorf("nightly: HTML: %w", p.err)
	}
	page.Parts = p.parts
	return reports.WritePage(w, page)
}

// issues returns the issues of a tracker, by cluster.
func (s *Summary) issues() map[string]*pageIssue {
	list := map[string]*pageIssue{}
	if s.Tracking == nil {
		return list
	}
	for i := range s.Tracking.Issues {
		t := &s.Tracking.Issues[i]
		if t.Issue != "" {
			list[t.Digest] = &pageIssue{issueLabel(t.Issue, t.Digest), webAddress(t.URL)}
		}
	}
	return list
}

// webAddress returns an address if a page may link to it; "" otherwise.
func webAddress(text string) string {
	if strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") {
		return text
	}
	return ""
}

// pager makes the parts of a page.
type pager struct {
	s      *Summary
	opts   PageOptions
	issues map[string]*pageIssue
	parts  []reports.PagePart
	err    error
}

func (p *pager) part(id, title string, folded bool, name string, data any) {
	var body bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&body, name, data); err != nil && p.err == nil {
		p.err = err
	}
	p.parts = append(p.parts, reports.PagePart{ID: id, Title: title, Folded: folded, Body: template.HTML(body.String())})
}

// The data of the templates, which see only exported fields.
type (
	pageFact struct {
		Name, Text string
		Alarm      bool
	}
	pageIssue struct{ Name, URL string }
	pageTrend struct {
		Width, Height int
		Label         string
		Bars          []pageBar
	}
	pageBar struct {
		Class               string
		X, Y, Width, Height int
	}
	pageCause struct {
		Group
		ID, Known, Counts, When string
		Severity                string
		Change                  string
		Rising                  bool
		Trend                   pageTrend
		Now, Before, All        int
		First, Last             string
		Notes                   []string
		Report, Missing         string
		Issue                   *pageIssue
		Alarming                bool
	}
	pageMissed struct {
		Missed
		When string
	}
	pageAlerted struct{ ID, Kind, Event, Error string }
	pageTracked struct {
		ID, Kind, Action, Name, URL string
		Remarks                     []string
	}
)

func (p *pager) overview() any {
	s := p.s
	var facts []pageFact
	for _, f := range s.facts() {
		facts = append(facts, pageFact{f.name, f.text, f.alarm})
	}
	return struct {
		Facts []pageFact
		Trend pageTrend
	}{facts, trendOf(s.Times, s.Run.Started.Sub(s.Since))}
}

func (p *pager) causes(id, title string, list []Group) {
	if len(list) == 0 {
		return
	}
	shown, more := cutList(list)
	var causes []pageCause
	for i := range shown {
		c := p.cause(&shown[i])
		c.Alarming = true
		causes = append(causes, c)
	}
	if more != "" {
		title += " (" + more + ")"
	}
	p.part(id, title, false, "causes", causes)
}

func (p *pager) table(id, title string, list []Group) {
	if len(list) == 0 {
		return
	}
	shown, more := cutList(list)
	var causes []pageCause
	for i := range shown {
		causes = append(causes, p.cause(&shown[i]))
	}
	p.part(id, title, false, "table", struct {
		Causes []pageCause
		More   string
	}{causes, more})
}

func (p *pager) cause(g *Group) pageCause {
	return pageCause{Group: *g, ID: shortDigest(g.Digest), Known: g.known(), Severity: g.severity(), Counts: g.counts(), Change: g.trend(), When: fmt.Sprintf("first %s, last %s", day(g.First), day(g.Last)),
		Rising: g.Recent > g.Earlier, Trend: trendOf(g.Times, p.s.Run.Started.Sub(p.s.Since)), Now: g.Recent, Before: g.Earlier, All: g.Count,
		First: day(g.First), Last: day(g.Last), Notes: g.notes(), Report: p.opts.Reports[g.Digest], Missing: p.opts.Missing[g.Digest], Issue: p.issues[g.Digest]}
}

func (p *pager) missed(id, title string, list []Missed) {
	if len(list) == 0 {
		return
	}
	shown, more := cutList(list)
	var rows []pageMissed
	for _, m := range shown {
		rows = append(rows, pageMissed{m, day(m.At)})
	}
	p.part(id, fmt.Sprintf("%s: %d", title, len(list)), true, "missed", struct {
		Failures []pageMissed
		More     string
	}{rows, more})
}

func (p *pager) tracking(k *Tracking) {
	if k == nil {
		return
	}
	var rows []pageTracked
	for i := range k.Issues {
		t := &k.Issues[i]
		row := pageTracked{ID: shortDigest(t.Digest), Kind: t.Kind, Action: string(t.Action), Name: issueLabel(t.Issue, t.Digest), URL: webAddress(t.URL), Remarks: t.remarks()}
		if t.Error != "" {
			row.Remarks = append(row.Remarks, t.Error)
		}
		rows = append(rows, row)
	}
	p.part("tracker", k.title(), false, "tracking", struct {
		Issues       []pageTracked
		Later, Error string
	}{rows, k.later(), k.Error})
}

func (p *pager) alerting(k *Alerting) {
	if k == nil {
		return
	}
	var rows []pageAlerted
	for _, a := range k.Alerts {
		rows = append(rows, pageAlerted{shortDigest(a.Digest), a.Kind, string(a.Event), a.Error})
	}
	p.part("alerts", k.title(), false, "alerting", struct {
		Alerts        []pageAlerted
		Summed, Error string
	}{rows, k.summed(), k.Error})
}

// cutList cuts a list, and says how many rows are missing.
func cutList[T any](list []T) ([]T, string) {
	if len(list) <= mostRows {
		return list, ""
	}
	return list[:mostRows], fmt.Sprintf("and %d more, in the JSON form", len(list)-mostRows)
}

// trendOf draws the number of failures in each of the times, the latest last.
func trendOf(times []int, each time.Duration) pageTrend {
	const bar, gap, height = 6, 2, 22
	most := 1
	var numbers []string
	for _, n := range times {
		most = max(most, n)
		numbers = append(numbers, fmt.Sprint(n))
	}
	t := pageTrend{Width: max(1, len(times)*(bar+gap)-gap), Height: height,
		Label: fmt.Sprintf("failures in each %s, the latest last: %s", span(each), strings.Join(numbers, ", "))}
	for i, n := range times {
		b := pageBar{X: i * (bar + gap), Width: bar, Height: 1}
		switch {
		case n == 0:
			b.Class = "none"
		case i == len(times)-1:
			b.Class = "latest"
			fallthrough
		default:
			b.Height = max(2, n*height/most)
		}
		b.Y = height - b.Height
		t.Bars = append(t.Bars, b)
	}
	return t
}

// span formats a duration for people.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour && d%(24*time.Hour) == 0:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Hour && d%time.Hour == 0:
		return wording.Count(int(d/time.Hour), "hour")
	}
	return d.String()
}
