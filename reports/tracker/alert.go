package tracker

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/reports"
)

// AlertVersion is the version of Alert's JSON, MAJOR.MINOR. reports/schema/alert-1.json describes
// it.
const AlertVersion = "1.0"

// AlertEvent is the reason of an alert.
type AlertEvent string

// The events.
const (
	// AlertNew: no summary had the cause before.
	AlertNew AlertEvent = "new"
	// AlertBack: the cause was marked as fixed, and failed since in another build.
	AlertBack AlertEvent = "back"
	// AlertMore: a night has more new and returned causes than it sends alerts for.
	AlertMore AlertEvent = "more"
)

// Alert is the message of a night to a webhook: about one cause or, with the event "more", about the
// causes that are left.
type Alert struct {
	// SchemaVersion is MAJOR.MINOR.
	SchemaVersion string `json:"schema_version"`
	// ID is equal for alerts of one event. An alert that was sent twice, because an answer was
	// lost, has the same. It is also in the header Idempotency-Key.
	ID string `json:"id"`
	// Event is new, back or more.
	Event AlertEvent `json:"event"`
	// At is when the night began.
	At time.Time `json:"at"`
	// Cause is the cause; absent with the event "more".
	Cause *AlertCause `json:"cause,omitempty"`
	// More are the causes without an alert of their own; only with the event "more".
	More *AlertRest `json:"more,omitempty"`
}

// AlertCause is what an alert says of a cause. Secrets are replaced in its texts.
type AlertCause struct {
	// Digest is the name of the cause in the corpus.
	Digest string `json:"digest"`
	// Kind, Proof, Summary and Program are those of the newest failure. Texts of more than 500
	// bytes are cut.
	Kind    string `json:"kind"`
	Proof   string `json:"proof"`
	Summary string `json:"summary"`
	Program string `json:"program"`
	// Class and Estimate are those of the most severe failure; empty: none is known.
	Class    evidence.SeverityClass  `json:"severity_class,omitempty"`
	Estimate evidence.Exploitability `json:"severity,omitempty"`
	// Count is the number of failures, Recent those in the night's period. First and Last are the
	// times of the earliest and the latest.
	Count  int       `json:"count"`
	Recent int       `json:"recent"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	// Example is the newest failure in the corpus, Back the first one since the fix.
	Example string `json:"example"`
	Back    string `json:"back,omitempty"`
	// Link is the cause's page; empty if the night was not told where the pages are.
	Link string `json:"link,omitempty"`
}

// AlertRest sums up the causes that have no alert of their own.
type AlertRest struct {
	// New and Back count them.
	New  int `json:"new"`
	Back int `json:"back"`
	// Causes are the first of them, at most 20.
	Causes []AlertCause `json:"causes"`
	// Link is the page of all causes; empty if it is not known.
	Link string `json:"link,omitempty"`
}

// MostAlertCauses bounds AlertRest.Causes.
const MostAlertCauses = 20

// mostAlertText bounds a text of an alert, in bytes.
const mostAlertText = 500

// cut makes texts of failing programs fit for one line of a message.
func (c *AlertCause) cut() {
	for _, t := range []*string{&c.Kind, &c.Proof, &c.Summary, &c.Program} {
		*t = cutText(reports.Clean(*t), mostAlertText)
	}
}

func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// title is an alert in one line.
func (a *Alert) title() string {
	if a.More != nil {
		return fmt.Sprintf("%d more causes: %d new, %d back", a.More.New+a.More.Back, a.More.New, a.More.Back)
	}
	return fmt.Sprintf("%s: %s in %s", map[AlertEvent]string{AlertNew: "New cause", AlertBack: "Fixed, and back"}[a.Event], a.Cause.Kind, a.Cause.Program)
}

// facts are the numbers of a cause.
func (c *AlertCause) facts() string {
	list := []string{c.Proof}
	if c.Estimate != "" {
		list = append(list, fmt.Sprintf("%s (%s)", c.Estimate, c.Class))
	}
	list = append(list, fmt.Sprintf("%s, the last %s", wording.Count(c.Count, "failure"), moment(c.Last)))
	return strings.Join(list, "; ")
}

// The forms of Slack's Block Kit that alerts use.
type (
	slackMessage struct {
		Text   string       `json:"text"`
		Blocks []slackBlock `json:"blocks"`
	}
	slackBlock struct {
		Type     string      `json:"type"`
		Text     *slackText  `json:"text,omitempty"`
		Elements []slackText `json:"elements,omitempty"`
	}
	slackText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
)

// The lengths that Slack takes, in characters; bytes are never fewer.
const (
	slackHeader  = 150
	slackSection = 3000
)

// slack makes an alert's message for Slack and what takes its form. In the blocks, text of programs
// is plain text, which has no markup and causes no mentions. Other servers read "text" as markup: there
// it is code.
func (a *Alert) slack() slackMessage {
	plain := func(text string, most int) *slackText {
		return &slackText{"plain_text", cutText(text, most-len("..."))}
	}
	m := slackMessage{Text: slackCode(a.title())}
	m.Blocks = append(m.Blocks, slackBlock{Type: "header", Text: plain(a.title(), slackHeader)})
	link := ""
	if c := a.Cause; c != nil {
		m.Blocks = append(m.Blocks, slackBlock{Type: "section", Text: plain(c.Summary, slackSection)},
			slackBlock{Type: "context", Elements: []slackText{*plain(c.facts(), slackSection)}})
		m.Text += "\n" + slackCode(c.Summary) + "\n" + slackCode(c.facts())
		link = c.Link
	}
	if a.More != nil {
		var lines []string
		for i := range a.More.Causes {
			c := &a.More.Causes[i]
			lines = append(lines, fmt.Sprintf("%s in %s: %s", c.Kind, c.Program, cutText(c.Summary, 100)))
		}
		if len(lines) > 0 {
			m.Blocks = append(m.Blocks, slackBlock{Type: "section", Text: plain(strings.Join(lines, "\n"), slackSection)})
		}
		for _, l := range lines {
			m.Text += "\n" + slackCode(l)
		}
		link = a.More.Link
	}
	if link != "" {
		m.Blocks = append(m.Blocks, slackBlock{Type: "section", Text: &slackText{"mrkdwn", "<" + slackEscape(link) + "|Open the page>"}})
		m.Text += "\n" + slackEscape(link)
	}
	return m
}

// slackEscape escapes the characters that control Slack's markup.
func slackEscape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// slackCode is a text as code, which is not read for links and mentions. Where a server looks for
// mentions nevertheless, there is an invisible space in them.
func slackCode(text string) string {
	return "`" + strings.NewReplacer("`", "'", "@", "@\u200b", "&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text) + "`"
}
