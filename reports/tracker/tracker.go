package tracker

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"diagnose/evidence"
	"diagnose/reports"
)

// Tracker is where issues are kept.
type Tracker interface {
	// Name is what the tracker is called in texts and in the corpus. It holds no secret.
	Name() string
	// Upsert opens the issue of a cause, or adds to the one that there is. The error is
	// an *Error if it is about the tracker.
	Upsert(ctx context.Context, r *Report) (Result, error)
}

// Report is what a tracker is told of a cause.
type Report struct {
	// Digest is the signature that the failures are grouped by, 32 hexadecimal digits.
	Digest string
	// Case is the report of one of them; Version the tool's.
	Case    *evidence.Case
	Version string
	// Count is the number of failures, First and Last when they were. Recent counts
	// those since Since, Earlier those of as long a time before.
	Count, Recent, Earlier int
	First, Last, Since     time.Time
	// Example is the name of the newest in its corpus.
	Example string
	// Issue is where an earlier night reported it, as its Result had it; "" for nowhere.
	// Attached says that the whole report is there.
	Issue    string
	Attached bool
	// BackSince names the first failure after an issue was closed, of a build that had
	// not failed so before it; "" for none.
	BackSince func(closed time.Time) string
}

// Action is what was done, or would be.
type Action string

// The actions.
const (
	Opened    Action = "opened"
	Commented Action = "commented"
	Reopened  Action = "reopened"
	// Quiet: it was commented on already in this night.
	Quiet Action = "said already"
	// LeftClosed: it is closed, and nothing failed since in a later build; or it was
	// closed as not to be fixed, or as a duplicate.
	LeftClosed Action = "left closed"
)

// Result is what came of an Upsert.
type Result struct {
	Action Action `json:"action"`
	// Issue is its number or key, empty for one that would be opened; URL where people
	// see it.
	Issue string `json:"issue,omitempty"`
	URL   string `json:"url,omitempty"`
	// Attached says that the whole report is there, be it as a file or as the issue.
	Attached bool `json:"attached"`
	// Duplicates are issues of the same cause that were closed.
	Duplicates []string `json:"duplicates,omitempty"`
	// Note is what could not be done, and what is no reason to give up.
	Note string `json:"note,omitempty"`
}

// keyPrefix makes one word of letters and digits with the digest, which every search
// finds as a whole. It has 40 characters, as many as a Bugzilla alias may have.
const keyPrefix = "diagnose"

// Key is the word by which the issue of a cause is known again.
func Key(digest string) string { return keyPrefix + digest }

var digestForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// keyLine is the last line of a text of ours. What a failing program is called stands
// above it, so the last one counts.
var keyLine = regexp.MustCompile(`(?m)^Key: (` + keyPrefix + `[0-9a-f]{32})[ \t\r]*$`)

// keyOf is the key of an issue's or a comment's text, "" without one.
func keyOf(text string) string {
	all := keyLine.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

func (r *Report) check() error {
	if !digestForm.MatchString(r.Digest) || r.Case == nil || r.BackSince == nil {
		return fmt.Errorf("tracker: the report of %q is not whole", r.Digest)
	}
	return nil
}

// footRoom is what the lines below a report take.
const footRoom = 512

// write makes the issue's title and text.
func (r *Report) write(opts reports.IssueOptions) (title, body string, err error) {
	opts.MaxBody -= footRoom
	opts.Version = r.Version
	issue, err := reports.WriteIssue(r.Case, opts)
	if err != nil {
		return "", "", err
	}
	foot := fmt.Sprintf("\n%s so far, the first %s, the last %s; for example %s.\n\nKey: %s\n",
		failures(r.Count), moment(r.First), moment(r.Last), r.example(), Key(r.Digest))
	return issue.Title, issue.Body + foot, nil
}

// wouldOpen is what a dry run says of an issue that is not there.
func (r *Report) wouldOpen(opts reports.IssueOptions) (Result, error) {
	title, body, err := r.write(opts)
	if err != nil {
		return Result{}, err
	}
	return Result{Action: Opened, Note: fmt.Sprintf("it would be called %q, with %d bytes of text", title, len(body))}, nil
}

// comment makes a comment's text. Nothing in it is the failing program's.
func (r *Report) comment(back string) string {
	var b strings.Builder
	if back != "" {
		fmt.Fprintf(&b, "It is back, in a build that had not failed so before this was closed: %s.\n\n", word(back))
	}
	fmt.Fprintf(&b, "%s since %s (%d in as long a time before), %d in all, the last %s; for example %s.\n\nKey: %s\n",
		failures(r.Recent), moment(r.Since), r.Earlier, r.Count, moment(r.Last), r.example(), Key(r.Digest))
	return b.String()
}

// attachment is the whole report.
func (r *Report) attachment() ([]byte, error) {
	var b bytes.Buffer
	err := reports.Write(&b, r.Case, reports.Options{Format: reports.Markdown, Version: r.Version})
	return b.Bytes(), err
}

// attachmentName is a kind of file that all trackers take.
const attachmentName = "report.md"

func (r *Report) example() string { return word(r.Example) }

// word keeps what is a word in every markup.
func word(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return -1
	}, text)
}

func failures(n int) string {
	if n == 1 {
		return "1 failure"
	}
	return fmt.Sprintf("%d failures", n)
}

func moment(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }
