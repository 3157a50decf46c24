package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"diagnose/corpus"
	"diagnose/internal/wording"
	"diagnose/reports"
)

//go:embed html
var pageFiles embed.FS

var (
	pageStyle  = reports.Style() + asset("html/page.css")
	pageScript = asset("html/page.js")
	pagePolicy = "default-src 'none'; style-src '" + reports.SourceHash(pageStyle) + "'; script-src '" + reports.SourceHash(pageScript) +
		"'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	pageTemplates = template.Must(template.New("").Funcs(template.FuncMap{
		"span": reports.Span, "day": day, "short": short, "ago": ago, "count": func(n int, noun string) string { return wording.Count(n, noun) },
		"size": func(n int64) string { return wording.Size(uint64(max(0, n))) }, "web": webAddress, "brief": brief,
	}).ParseFS(pageFiles, "html/*.tmpl"))
)

// asset returns an embedded file. It is missing only from a build without it.
func asset(name string) string {
	text, err := pageFiles.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// The data of the templates, which see only exported fields.

// frame is what all pages have.
type frame struct {
	Title, Here, Version string
	Style                template.CSS
	Script               template.JS
	// Form is the hidden field of this session's forms. Login says that readers log in, and can
	// log out.
	Form  string
	Login bool
	Nav   []navigation
	Query string
}

type navigation struct{ Name, Href string }

// frame is the frame of a page; here is the address of its entry in the navigation.
func (s *Server) frame(q *request, title, here string) frame {
	return frame{Title: title, Here: here, Version: s.opts.Version, Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		Form: s.session.form(q.Request), Login: !s.session.open(),
		Nav: []navigation{{"Morning", "/"}, {"Causes", "/causes"}, {"Failures", "/failures"}, {"Tests", "/tests"}}}
}

// render writes a page. Nothing is written if it cannot be made.
func (s *Server) render(q *request, status int, name string, data any) error {
	var b bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&b, name, data); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	q.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	q.w.WriteHeader(status)
	q.w.Write(b.Bytes()) // an error is the reader's connection
	return nil
}

func (s *Server) show(q *request, name string, data any) error {
	return s.render(q, http.StatusOK, name, data)
}

// mostPaged is the number of rows of one page.
const mostPaged = 100

// pages lead through a long list.
type pages struct {
	// First and Last are the numbers of the rows shown, from 1, of Total. First is 0 for none.
	First, Last, Total int
	Before, After      string
}

// paged returns the part of a list that a selection's page has.
func paged[T any](list []T, path string, s selection) ([]T, pages) {
	from := min((s.Page-1)*mostPaged, len(list))
	to := min(from+mostPaged, len(list))
	p := pages{First: from + 1, Last: to, Total: len(list)}
	if from == to {
		p.First = 0
	}
	if s.Page > 1 {
		before := s
		before.Page = min(s.Page-1, max(1, (len(list)+mostPaged-1)/mostPaged))
		p.Before = before.address(path)
	}
	if to < len(list) {
		after := s
		after.Page++
		p.After = after.address(path)
	}
	return list[from:to], p
}

// row is a failure in a list.
type row struct {
	ID, Program, Version, Ended, Host, When string
	Passed, Dropped                         bool
	// Kind and Summary are those of the diagnosis, Cause is its digest; Reason is why there is
	// none.
	Kind, Summary, Cause, Reason string
	Labels                       []label
}

type label struct{ Key, Value string }

// rows are failures as they are shown.
func (s *Server) rows(list []*corpus.Entry) []row {
	d := s.opts.Redact.Redactor()
	var rows []row
	for _, e := range list {
		r := row{ID: e.ID, Program: d.Text(e.Name()), Version: versionOf(e), Ended: d.Text(e.Ended), Host: d.Text(e.Labels[hostLabel]), When: day(e.FailedAt), Passed: e.Passed, Dropped: e.DroppedAt != nil}
		if x := e.Diagnosis; x != nil {
			r.Kind, r.Summary, r.Cause, r.Reason = x.Kind, d.Text(x.Summary), x.Cluster(), d.Text(x.Reason)
		}
		for _, k := range sortedKeys(e.Labels) {
			if k != hostLabel && k != versionLabel {
				r.Labels = append(r.Labels, label{k, d.Text(e.Labels[k])})
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func day(at time.Time) string { return at.Local().Format("2006-01-02 15:04") }

// short is the part of a digest or a name that distinguishes it.
func short(text string) string {
	if len(text) > 12 && strings.Trim(text, "0123456789abcdef") == "" {
		return text[:12]
	}
	return text
}

// ago is how long before now a moment was.
func ago(now, at time.Time) string {
	switch d := now.Sub(at); {
	case d < 0:
		return "in the future"
	case d < time.Hour:
		return wording.Count(int(d/time.Minute), "minute") + " ago"
	case d < 48*time.Hour:
		return wording.Count(int(d/time.Hour), "hour") + " ago"
	default:
		return wording.Count(int(d/(24*time.Hour)), "day") + " ago"
	}
}

// mostBrief bounds a text of a list, in bytes. The page of its own has more.
const mostBrief = 240

// brief is a text for a list.
func brief(text string) string {
	text = reports.Clean(text)
	if len(text) <= mostBrief {
		return text
	}
	return strings.ToValidUTF8(text[:mostBrief], "") + "..."
}

// webAddress returns an address if a page may link to it; "" otherwise.
func webAddress(text string) string {
	if strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") {
		return text
	}
	return ""
}
