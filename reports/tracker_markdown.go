package reports

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"diagnose/evidence"
	"diagnose/evidence/signature"
)

// Markup is the language of the text of an issue in a bug tracker.
type Markup string

// The markups.
const (
	// MarkupGitHub is the Markdown of GitHub, GitLab, Gitea and Forgejo: with tables, and with HTML
	// for parts that fold.
	MarkupGitHub Markup = "github"
	// MarkupJira is Jira's wiki notation.
	MarkupJira Markup = "jira"
	// MarkupPlain is text, as Bugzilla shows it.
	MarkupPlain Markup = "plain"
)

// IssueOptions says what an issue is written for.
type IssueOptions struct {
	Markup Markup
	// MaxTitle and MaxBody bound the text, in bytes, so that it has no more characters than a
	// tracker allows.
	MaxTitle, MaxBody int
	// ShowSecrets and Version are as in Options.
	ShowSecrets bool
	Version     string
}

// The bounds of the trackers, in characters. GitHub's issues have 65,536. GitLab's descriptions
// have 1,048,576; the bound here is lower, as people do not read that much. Jira's fields have
// 32,767 unless an administrator set another number, and its summaries less than 255. Bugzilla's
// comments have 65,535. Gitea has no bound for the text, and gets GitHub's. docs/trackers.md has
// the sources.
var (
	GitHubIssue   = IssueOptions{Markup: MarkupGitHub, MaxTitle: 256, MaxBody: 65536}
	GitLabIssue   = IssueOptions{Markup: MarkupGitHub, MaxTitle: 255, MaxBody: 262144}
	GiteaIssue    = IssueOptions{Markup: MarkupGitHub, MaxTitle: 255, MaxBody: 65536}
	JiraIssue     = IssueOptions{Markup: MarkupJira, MaxTitle: 254, MaxBody: 32767}
	BugzillaIssue = IssueOptions{Markup: MarkupPlain, MaxTitle: 255, MaxBody: 65535}
)

// Issue is a report as the text of an issue.
type Issue struct {
	// Title is one line of plain text: the cause if it is proved, or else the failure.
	Title string
	Body  string
	// LeftOut are the titles of the parts that are missing or cut.
	LeftOut []string
	// Signature identifies the failure when it happens again.
	Signature signature.Signature
}

// minBody is the size of the shortest body.
const minBody = 2048

// WriteIssue writes the report of c, which must pass its own Check, as the text of an issue that
// fits. It leaves out the least important parts, and says so.
func WriteIssue(c *evidence.Case, opts IssueOptions) (Issue, error) {
	if opts.MaxBody < minBody || opts.MaxTitle < 20 {
		return Issue{}, fmt.Errorf("reports: an issue of %d bytes with a title of %d is too small", opts.MaxBody, opts.MaxTitle)
	}
	w, err := issueWriterOf(opts.Markup)
	if err != nil {
		return Issue{}, err
	}
	if err := c.Check(); err != nil {
		return Issue{}, fmt.Errorf("reports: the case contradicts itself: %w", err)
	}
	issue := Issue{Signature: signature.Of(c)}
	o := Options{ShowSecrets: opts.ShowSecrets, Version: opts.Version}
	c, _ = edited(c, &o)
	c = withRefused(c)
	issue.Title = cutTo(headlineOf(c).text(), opts.MaxTitle)
	err = issue.fill(w, issueParts(c, o), opts)
	return issue, err
}

// cutTo cuts a text to a number of bytes.
func cutTo(text string, most int) string {
	const mark = "..."
	if len(text) <= most {
		return text
	}
	end := most - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// issuePart is a part of an issue. Parts are in order of importance.
type issuePart struct {
	title  string
	folded bool
	blocks []block
}

func issueParts(c *evidence.Case, opts Options) []issuePart {
	h := headlineOf(c)
	lead := slices.Concat([]block{prose{h.lead()}}, h.symptom(), interrupted(c.Diagnosis), severeLimits(c.Limits))
	list := []issuePart{{"", false, append(lead, summary(c, opts))}}
	add := func(title string, folded bool, blocks []block) {
		if len(blocks) == 0 {
			return
		}
		if h, ok := blocks[0].(heading); ok {
			title, blocks = h.String(), blocks[1:]
		}
		list = append(list, issuePart{title, folded, blocks})
	}
	add("Before the end", false, lastWords(c.Ending))
	add("Cause", false, causes(c))
	add("Source", false, source(c.Failure.Source))
	add("Where the bad value came from", true, origin(c.Failure.Origin))
	add("The check that led there", true, check(c.Failure.Check))
	add("Findings", true, findings("Findings", c.Findings))
	add("Stacks", true, stacks(c))
	add("Recursion", true, recursion(c.Failure.Recursion))
	add("Failing instruction", true, instruction(c.Failure.Instruction))
	add("Limits", true, otherLimits(c.Limits))
	add("Traced", true, coverage(c.Diagnosis))
	add("Goroutines", true, goroutines(c.Goroutines))
	add("Suspects", true, scan(c.Scan, c.Failure.Kind))
	add("Registers", true, registers(c.Registers))
	return list
}

// issueWriter writes the parts in one markup.
type issueWriter interface {
	// open and close enclose a part.
	open(title string, folded bool) string
	close(folded bool) string
	// block writes one block. Prose that comes first says what the issue is about.
	block(b block, first bool) (string, error)
	// plain writes a line of text that does not come from the target.
	plain(text string) string
}

func issueWriterOf(m Markup) (issueWriter, error) {
	switch m {
	case MarkupGitHub:
		return gitHubWriter{}, nil
	case MarkupJira:
		return jiraWriter{}, nil
	case MarkupPlain:
		return plainWriter{}, nil
	}
	return nil, fmt.Errorf("reports: unknown markup %q", m)
}

// maxIssueSpan bounds a name in an issue, in bytes.
const maxIssueSpan = 400

// fill writes the parts while there is room. A part that is too long keeps its first blocks, and a
// block of lines its first lines.
func (i *Issue) fill(w issueWriter, parts []issuePart, opts IssueOptions) error {
	foot := i.foot(w, opts)
	const leftOut = 600 // bounds the line about the parts left out
	room := opts.MaxBody - len(foot) - leftOut
	var body strings.Builder
	for n, p := range parts {
		head, tail := w.open(p.title, p.folded), w.close(p.folded)
		space := room - body.Len() - len(head) - len(tail)
		text, whole, err := fitBlocks(w, p.blocks, space, n == 0)
		if err != nil {
			return err
		}
		if !whole {
			title := p.title
			if title == "" {
				title = "Summary"
			}
			i.LeftOut = append(i.LeftOut, title)
		}
		if text != "" {
			body.WriteString(head + text + tail)
		}
	}
	if len(i.LeftOut) > 0 {
		text := "Left out or cut, for there is no room: " + strings.Join(i.LeftOut, "; ") + ". The whole report has it."
		body.WriteString("\n" + w.plain(cutTo(text, leftOut/2)) + "\n")
	}
	i.Body = body.String() + foot
	if len(i.Body) > opts.MaxBody {
		return fmt.Errorf("reports: an issue of %d bytes was made where %d fit", len(i.Body), opts.MaxBody)
	}
	return nil
}

func (i *Issue) foot(w issueWriter, opts IssueOptions) string {
	text := "Reported by diagnose"
	if opts.Version != "" {
		text += " " + Clean(cutTo(opts.Version, 100))
	}
	if i.Signature.Cause != "" {
		text += ", cause " + i.Signature.Cause
	}
	if i.Signature.Stack != "" {
		text += ", stack " + i.Signature.Stack
	}
	return "\n" + w.plain(text) + "\n"
}

// fitBlocks writes blocks into a number of bytes. whole reports whether all of them fitted.
func fitBlocks(w issueWriter, blocks []block, space int, first bool) (text string, whole bool, err error) {
	var out strings.Builder
	for n, b := range blocks {
		piece, err := w.block(shortBlock(b), first && n == 0)
		if err != nil {
			return "", false, err
		}
		if out.Len()+len(piece) <= space {
			out.WriteString(piece)
			continue
		}
		for keep := rowsOf(b) / 2; keep > 0; keep /= 2 {
			if piece, err = w.block(shortBlock(firstRows(b, keep)), false); err != nil {
				return "", false, err
			}
			if out.Len()+len(piece) <= space {
				out.WriteString(piece)
				break
			}
		}
		return out.String(), false, nil
	}
	return out.String(), true, nil
}

func rowsOf(b block) int {
	switch b := b.(type) {
	case verbatim:
		return len(b)
	case grid:
		return len(b.rows)
	case facts:
		return len(b)
	}
	return 0
}

// firstRows is the beginning of a block, with a note that it is not the whole.
func firstRows(b block, n int) block {
	const more = "... and %d more"
	switch b := b.(type) {
	case verbatim:
		return append(b[:n:n], say(caveat, fmt.Sprintf(more, len(b)-n)))
	case grid:
		row := make([]string, len(b.header))
		row[0] = fmt.Sprintf(more, len(b.rows)-n)
		return grid{header: b.header, rows: append(b.rows[:n:n], row), fit: b.fit, numbers: b.numbers}
	case facts:
		return append(b[:n:n], fact{"", say(caveat, fmt.Sprintf(more, len(b)-n))})
	}
	return b
}

// shortBlock is a block without names of a megabyte.
func shortBlock(b block) block {
	switch b := b.(type) {
	case heading:
		return heading{cutTo(b.text, maxIssueSpan), cutTo(b.of, maxIssueSpan)}
	case prose:
		return prose{shortLine(b.line)}
	case facts:
		list := make(facts, len(b))
		for i, f := range b {
			list[i] = fact{cutTo(f.name, maxIssueSpan), shortLine(f.text)}
		}
		return list
	case verbatim:
		list := make(verbatim, len(b))
		for i, l := range b {
			list[i] = shortLine(l)
		}
		return list
	case grid:
		g := grid{header: b.header, fit: b.fit, numbers: b.numbers}
		for _, row := range b.rows {
			short := make([]string, len(row))
			for i, c := range row {
				short[i] = cutTo(c, maxIssueSpan)
			}
			g.rows = append(g.rows, short)
		}
		return g
	}
	return b
}

func shortLine(l line) line {
	list := make(line, len(l))
	for i, s := range l {
		list[i] = span{cutTo(s.text, maxIssueSpan), s.style}
	}
	return list
}

// plainWriter writes the text format.
type plainWriter struct{}

func (plainWriter) open(title string, _ bool) string {
	if title == "" {
		return ""
	}
	return "\n" + Clean(cutTo(title, maxIssueSpan)) + "\n"
}

func (plainWriter) close(bool) string { return "" }

func (plainWriter) block(b block, first bool) (string, error) {
	var text bytes.Buffer
	blocks := []block{b}
	if !first {
		blocks = []block{gap{}, b}
	}
	err := writeText(&text, blocks, Options{})
	return text.String(), err
}

func (plainWriter) plain(text string) string { return text }

// gitHubWriter writes Markdown in which no text of the target notifies people, refers to other
// issues or links anywhere.
type gitHubWriter struct{}

func (gitHubWriter) open(title string, folded bool) string {
	if title == "" {
		return ""
	}
	title = cutTo(title, maxIssueSpan)
	if folded {
		// Markdown's escapes have no effect in HTML (CommonMark 0.31, 4.6).
		return "\n<details><summary>" + htmlText.Replace(Clean(title)) + "</summary>\n\n"
	}
	return "\n### " + quiet(Clean(title)) + "\n\n"
}

func (gitHubWriter) close(folded bool) string {
	if folded {
		return "\n</details>\n"
	}
	return ""
}

func (gitHubWriter) block(b block, first bool) (string, error) {
	if _, ok := b.(gap); ok {
		return "", nil
	}
	var text strings.Builder
	switch b := b.(type) {
	case heading:
		text.WriteString("#### " + quiet(b.String()) + "\n")
	case prose:
		text.WriteString(quietLine(b.line, first) + "\n")
	case facts:
		for _, f := range b {
			name := quiet(f.name)
			if name != "" {
				name = "**" + name + "**: "
			}
			text.WriteString("- " + name + quietLine(f.text, false) + "\n")
		}
	case verbatim:
		text.WriteString(fence(b))
	case grid:
		writeRow(&text, b.header)
		text.WriteString(strings.Repeat("| --- ", len(b.header)) + "|\n")
		for _, row := range b.rows {
			writeRow(&text, row)
		}
	}
	return text.String() + "\n", nil
}

func (gitHubWriter) plain(text string) string { return quiet(text) }

func writeRow(w *strings.Builder, row []string) {
	for _, cell := range row {
		w.WriteString("| " + quiet(cell) + " ")
	}
	w.WriteString("|\n")
}

// fence is a block of code, in which trackers do not look for references.
func fence(lines verbatim) string {
	mark := "```"
	for _, l := range lines {
		for strings.Contains(l.String(), mark) {
			mark += "`"
		}
	}
	var b strings.Builder
	b.WriteString(mark + "\n")
	for _, l := range lines {
		b.WriteString(l.String() + "\n")
	}
	b.WriteString(mark + "\n")
	return b.String()
}

var htmlText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "@", "<span>@</span>", "#", "<span>#</span>")

// signs are the characters that trackers take for a mention or a reference if a name or a number
// follows ("@team", "#12", "!7", "GH-3"), and the beginnings of links. Trackers search the text
// that Markdown has produced, so Markdown's escapes do not help; an element around the sign does.
var signs = regexp.MustCompile(`[@#!~%$&^]|://|\bwww\.|\bmailto:|\b(?i:GH-)`)

// quiet returns a text that is no markup and mentions no user.
func quiet(text string) string {
	var b strings.Builder
	last := 0
	for _, m := range signs.FindAllStringIndex(text, -1) {
		b.WriteString(markdownText(text[last:m[0]]) + "<span>" + markdownText(text[m[0]:m[1]]) + "</span>")
		last = m[1]
	}
	return b.String() + markdownText(text[last:])
}

func quietLine(l line, first bool) string {
	var b strings.Builder
	for _, s := range l {
		text := strings.TrimSpace(s.text)
		if text == "" || s.style != alarm && s.style != strong && !first {
			b.WriteString(quiet(s.text))
			continue
		}
		before, after, _ := strings.Cut(s.text, text)
		b.WriteString(before + "**" + quiet(text) + "**" + after)
	}
	return b.String()
}

// jiraWriter writes Jira's wiki notation, in which nothing folds.
type jiraWriter struct{}

func (jiraWriter) open(title string, _ bool) string {
	if title == "" {
		return ""
	}
	return "\nh3. " + jiraText(Clean(cutTo(title, maxIssueSpan))) + "\n"
}

func (jiraWriter) close(bool) string { return "" }

func (jiraWriter) block(b block, _ bool) (string, error) {
	var text strings.Builder
	switch b := b.(type) {
	case heading:
		text.WriteString("h4. " + jiraText(b.String()) + "\n")
	case prose:
		text.WriteString(jiraText(b.line.String()) + "\n")
	case facts:
		for _, f := range b {
			text.WriteString("* *" + jiraText(f.name) + "*: " + jiraText(f.text.String()) + "\n")
		}
	case verbatim:
		text.WriteString("{noformat}\n")
		for _, l := range b {
			text.WriteString(strings.ReplaceAll(l.String(), "{noformat}", "{ noformat}") + "\n")
		}
		text.WriteString("{noformat}\n")
	case grid:
		for _, cell := range b.header {
			text.WriteString("||" + jiraCell(cell))
		}
		text.WriteString("||\n")
		for _, row := range b.rows {
			for _, cell := range row {
				text.WriteString("|" + jiraCell(cell))
			}
			text.WriteString("|\n")
		}
	}
	return text.String(), nil
}

func (jiraWriter) plain(text string) string { return jiraText(text) }

// jiraCell is never empty: an empty cell would turn the next one into a header.
func jiraCell(text string) string {
	if text == "" {
		return " "
	}
	return jiraText(text)
}

// jiraMarkup escapes the characters that have a meaning in the wiki notation by a backslash. A
// backslash itself has no escape.
var jiraMarkup = strings.NewReplacer(`\`, `&#92;`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "*", `\*`, "_", `\_`, "|", `\|`, "!", `\!`,
	"^", `\^`, "~", `\~`, "+", `\+`, "-", `\-`, "@", "&#64;", "#", "&#35;", "://", ":&#47;/")

func jiraText(text string) string { return jiraMarkup.Replace(text) }
