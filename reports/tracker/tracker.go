package tracker

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/reports"
)

// Tracker is where issues are kept.
type Tracker interface {
	// Name is the tracker's name in texts and in the corpus. It holds no secret.
	Name() string
	// Upsert opens the issue of a cause, or adds to an existing one. The error is an *Error if it
	// is about the tracker.
	Upsert(ctx context.Context, r *Report) (Result, error)
}

// Report is the data that a tracker gets about a cause.
type Report struct {
	// Digest is the signature that the failures are grouped by, 32 hexadecimal digits.
	Digest string
	// Case is the report of one of the failures, Version the tool's version.
	Case    *evidence.Case
	Version string
	// Count is the number of failures, First and Last are the times of the first and the last one.
	// Recent counts those since Since, Earlier those in a period of the same length before Since.
	Count, Recent, Earlier int
	First, Last, Since     time.Time
	// Example is the name of the newest failure in its corpus.
	Example string
	// Issue is where an earlier night reported it, from the Result of that night; "" if none did.
	// Attached says that the issue has the whole report.
	Issue    string
	Attached bool
	// BackSince names the first failure after an issue was closed, of a build that had not failed
	// in this way before; "" if there is none.
	BackSince func(closed time.Time) string
}

// Action is what Upsert did, or would do in a dry run.
type Action string

// The actions.
const (
	Opened    Action = "opened"
	Commented Action = "commented"
	Reopened  Action = "reopened"
	// Quiet: this night has commented on it already.
	Quiet Action = "said already"
	// LeftClosed: it is closed, and no later build failed since; or it was closed as not to be
	// fixed, or as a duplicate.
	LeftClosed Action = "left closed"
)

// Result is the result of an Upsert.
type Result struct {
	Action Action `json:"action"`
	// Issue is its number or key, empty for an issue that would be opened. URL is its page.
	Issue string `json:"issue,omitempty"`
	URL   string `json:"url,omitempty"`
	// Attached says that the tracker has the whole report, as a file or as the issue.
	Attached bool `json:"attached"`
	// Duplicates are issues of the same cause that were closed.
	Duplicates []string `json:"duplicates,omitempty"`
	// Note says which steps failed without a reason to give up.
	Note string `json:"note,omitempty"`
}

// keyPrefix and the digest make one word of letters and digits, which every search finds as a
// whole. It has 40 characters, as many as a Bugzilla alias may have.
const keyPrefix = "diagnose"

// Key is the word that identifies the issue of a cause.
func Key(digest string) string { return keyPrefix + digest }

var digestForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// keyLine is the last line of a text that this tool writes. The names that the failing program
// chose are above it, so the last match counts.
var keyLine = regexp.MustCompile(`(?m)^Key: (` + keyPrefix + `[0-9a-f]{32})[ \t\r]*$`)

// keyOf returns the key in the text of an issue or a comment, "" if there is none.
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

// footRoom is the size of the lines below a report.
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
		wording.Count(r.Count, "failure"), moment(r.First), moment(r.Last), r.example(), Key(r.Digest))
	return issue.Title, issue.Body + foot, nil
}

// wouldOpen is the result of a dry run for an issue that does not exist.
func (r *Report) wouldOpen(opts reports.IssueOptions) (Result, error) {
	title, body, err := r.write(opts)
	if err != nil {
		return Result{}, err
	}
	return Result{Action: Opened, Note: fmt.Sprintf("it would be called %q, with %d bytes of text", title, len(body))}, nil
}

// comment makes a comment's text. It contains no text of the failing program.
func (r *Report) comment(back string) string {
	var b strings.Builder
	if back != "" {
		fmt.Fprintf(&b, "It is back, in a build that had not failed so before this was closed: %s.\n\n", word(back))
	}
	fmt.Fprintf(&b, "%s since %s (%d in as long a time before), %d in all, the last %s; for example %s.\n\nKey: %s\n",
		wording.Count(r.Recent, "failure"), moment(r.Since), r.Earlier, r.Count, moment(r.Last), r.example(), Key(r.Digest))
	return b.String()
}

// attachment is the whole report.
func (r *Report) attachment() ([]byte, error) {
	var b bytes.Buffer
	err := reports.Write(&b, r.Case, reports.Options{Format: reports.Markdown, Version: r.Version})
	return b.Bytes(), err
}

// attachmentName has a type that all trackers accept.
const attachmentName = "report.md"

func (r *Report) example() string { return word(r.Example) }

// word keeps the characters that belong to a word in every markup.
func word(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return -1
	}, text)
}

func moment(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }
