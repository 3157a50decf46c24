package tracker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"diagnose/reports"
)

// issue is an issue of a tracker.
type issue struct {
	// number orders the issues of a project: the lower is the earlier. name identifies it in
	// requests.
	number int64
	name   string
	url    string
	open   bool
	closed time.Time // zero: it is open, or the time is not known
	// duplicate and refused say why it is closed.
	duplicate, refused bool
	key                string
	// foreign: create found that another host had just made it.
	foreign bool
}

// api has the operations of a tracker on the network.
type api interface {
	// findIssues returns the issues that have a key, closed ones too. Issues that are not older
	// than a day are found even if the tracker's index does not have them yet.
	findIssues(ctx context.Context, key string) ([]issue, error)
	// get returns an issue. The error is Missing if there is none.
	get(ctx context.Context, name string) (issue, error)
	create(ctx context.Context, key, title, body string) (issue, error)
	// attach adds a file. It returns false if the tracker has no files.
	attach(ctx context.Context, is issue, name string, text []byte) (bool, error)
	comment(ctx context.Context, is issue, text string) error
	// commented reports whether one of the comments since a time has a key.
	commented(ctx context.Context, is issue, since time.Time, key string) (bool, error)
	reopen(ctx context.Context, is issue) error
	// rivals returns issues that have the key of an issue that was just created, and lower numbers,
	// and that findIssues may not find yet.
	rivals(ctx context.Context, is issue) ([]issue, error)
	// closeAs closes an issue as the duplicate of another.
	closeAs(ctx context.Context, is, of issue) error
}

// issueSet collects the issues that have a key, each once.
type issueSet struct {
	key  string
	list []issue
}

func (s *issueSet) put(is issue) {
	if is.key != s.key {
		return
	}
	for i := range s.list {
		if s.list[i].name == is.name {
			s.list[i] = is // the later one is from the database
			return
		}
	}
	s.list = append(s.list, is)
}

// night is how long a comment counts as this night's.
const night = 20 * time.Hour

// settleTime is the pause between the creation of an issue and the check whether another host
// created one as well: a lower number may be given out earlier and become visible later.
const settleTime = 2 * time.Second

// hosted is a tracker on the network.
type hosted struct {
	api
	*client
	opts reports.IssueOptions
	dry  bool
}

func (h *hosted) Name() string { return h.name }

func (h *hosted) Upsert(ctx context.Context, r *Report) (Result, error) {
	if err := r.check(); err != nil {
		return Result{}, err
	}
	list, err := h.issuesOf(ctx, r)
	if err != nil {
		return Result{}, err
	}
	if len(list) == 0 {
		return h.open(ctx, r)
	}
	return h.again(ctx, r, list)
}

// issuesOf returns the issues of a cause. The issue that an earlier night noted needs no search,
// unless it was closed as a duplicate or has changed its key.
func (h *hosted) issuesOf(ctx context.Context, r *Report) ([]issue, error) {
	if r.Issue != "" {
		is, err := h.get(ctx, r.Issue)
		if err == nil && is.key == Key(r.Digest) && !is.duplicate {
			return []issue{is}, nil
		}
		if err != nil && kindOf(err) != Missing {
			return nil, err
		}
	}
	return h.findIssues(ctx, Key(r.Digest))
}

// winner is the issue that counts: the lowest that was not closed as a duplicate. It is false if
// all of them were closed as duplicates of one without a key.
func winner(list []issue) (issue, bool) {
	list = slices.DeleteFunc(slices.Clone(list), func(is issue) bool { return is.duplicate })
	if len(list) == 0 {
		return issue{}, false
	}
	return slices.MinFunc(list, func(a, b issue) int { return int(max(-1, min(1, a.number-b.number))) }), true
}

// open creates an issue and then checks that it is the only one.
func (h *hosted) open(ctx context.Context, r *Report) (Result, error) {
	if h.dry {
		return r.wouldOpen(h.opts)
	}
	mine, note, err := h.write(ctx, r)
	if err != nil && !unsure(err) {
		return Result{}, err
	}
	const together = "another host opened it at the same time"
	if mine.foreign {
		return Result{Action: Quiet, Issue: mine.name, URL: mine.url, Attached: true, Note: together}, nil
	}
	failed := err
	if err := h.sleep(ctx, settleTime); err != nil {
		return Result{}, err
	}
	list, err := h.findIssues(ctx, Key(r.Digest))
	if err == nil && failed == nil {
		var more []issue
		more, err = h.rivals(ctx, mine)
		list = append(list, more...)
	}
	if err != nil && failed == nil {
		// The next night checks whether there are two.
		note = joined(note, "whether another host opened one as well could not be seen: "+err.Error())
		return h.fill(ctx, r, Result{Action: Opened, Note: note}, mine)
	}
	if err != nil {
		return Result{}, failed
	}
	if failed == nil && !slices.ContainsFunc(list, func(is issue) bool { return is.name == mine.name }) {
		list = append(list, mine)
	}
	first, ok := winner(list)
	if !ok {
		return Result{}, failed // it was not created, and another night tries again
	}
	if failed == nil && first.name == mine.name {
		return h.fill(ctx, r, Result{Action: Opened, Note: note}, mine)
	}
	if failed != nil {
		// It is not known which host created the issue. It has the report of this host.
		return h.fill(ctx, r, Result{Action: Opened, Note: "the answer to its opening was lost: " + failed.Error()}, first)
	}
	if err := h.closeAs(ctx, mine, first); err != nil {
		return Result{}, fmt.Errorf("%s is a duplicate of %s and cannot be closed: %w", mine.name, first.name, err)
	}
	return Result{Action: Quiet, Issue: first.name, URL: first.url, Attached: true, Duplicates: []string{mine.name},
		Note: together}, nil
}

// A server may accept less than trackers of its kind usually do: an administrator sets Jira's
// bound, and the server may count another form of the text. So a text that is refused for its
// length is tried once more with a quarter of it, but not with less than a useful minimum.
const (
	shorterBody  = 3 << 10
	shorterTitle = 100
)

// write creates an issue of a report. note says if the report had to be shortened.
func (h *hosted) write(ctx context.Context, r *Report) (made issue, note string, err error) {
	title, body, err := r.write(h.opts)
	if err != nil {
		return issue{}, "", err
	}
	made, err = h.create(ctx, Key(r.Digest), title, body)
	if !tooLong(err) {
		return made, "", err
	}
	opts := h.opts
	opts.MaxTitle, opts.MaxBody = min(opts.MaxTitle, shorterTitle), max(len(body)/4, shorterBody)
	shortTitle, short, no := r.write(opts)
	if no != nil || len(short) >= len(body) && shortTitle == title {
		return made, "", err
	}
	note = fmt.Sprintf("it refused a text of %d bytes and got one of %d: %v", len(body), len(short), err)
	made, err = h.create(ctx, Key(r.Digest), shortTitle, short)
	return made, note, err
}

// fill attaches the report to an existing issue.
func (h *hosted) fill(ctx context.Context, r *Report, done Result, is issue) (Result, error) {
	done.Issue, done.URL = is.name, is.url
	text, err := r.attachment()
	if err != nil {
		return done, err
	}
	_, err = h.attach(ctx, is, attachmentName, text)
	switch {
	case err == nil, kindOf(err) == Refused, kindOf(err) == Denied, kindOf(err) == Missing:
		done.Attached = true // or it never can be
	}
	if err != nil {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		done.Note = joined(done.Note, "the whole report could not be attached: "+err.Error())
	}
	return done, nil
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// again adds to the issue of a cause.
func (h *hosted) again(ctx context.Context, r *Report, list []issue) (Result, error) {
	is, ok := winner(list)
	if !ok {
		return Result{Action: LeftClosed, Issue: list[0].name, URL: list[0].url, Attached: true}, nil
	}
	done := Result{Issue: is.name, URL: is.url, Attached: r.Attached}
	for _, other := range list {
		if other.name == is.name || !other.open {
			continue
		}
		if !h.dry {
			if err := h.closeAs(ctx, other, is); err != nil {
				return done, err
			}
		}
		done.Duplicates = append(done.Duplicates, other.name)
	}
	if r.Issue == is.name && !r.Attached && !h.dry {
		var err error
		if done, err = h.fill(ctx, r, done, is); err != nil {
			return done, err
		}
	} else if r.Issue != is.name {
		done.Attached = true // the host that opened it attached the report
	}
	back := ""
	if !is.open {
		if back = r.BackSince(is.closed); back == "" || is.refused {
			done.Action = LeftClosed
			return done, nil
		}
		done.Action = Reopened
		if !h.dry {
			if err := h.reopen(ctx, is); err != nil {
				return done, err
			}
		}
	} else {
		said, err := h.commented(ctx, is, h.clock().Add(-night), Key(r.Digest))
		if err != nil {
			return done, err
		}
		if said {
			done.Action = Quiet
			return done, nil
		}
		done.Action = Commented
	}
	if h.dry {
		return done, nil
	}
	return done, h.say(ctx, r, is, back)
}

// say comments. If the answer is lost, it checks whether the comment exists.
func (h *hosted) say(ctx context.Context, r *Report, is issue, back string) error {
	began := h.clock()
	err := h.comment(ctx, is, r.comment(back))
	if err == nil || !unsure(err) {
		return err
	}
	said, seen := h.commented(ctx, is, began.Add(-time.Minute), Key(r.Digest))
	if seen == nil && said {
		return nil
	}
	return err
}
