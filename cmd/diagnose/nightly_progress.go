package main

import (
	"fmt"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"diagnose/corpus/nightly"
	"diagnose/reports"
)

// nightProgress is one line on a terminal, and elsewhere a line for each failure.
type nightProgress struct {
	*progress
	plain  *os.File
	redact *reports.Redaction
}

func newNightProgress(file *os.File, redact *reports.Redaction) *nightProgress {
	p := &nightProgress{progress: newProgress(file), redact: redact}
	if !isatty.IsTerminal(file.Fd()) {
		p.plain = file
	}
	return p
}

func (p *nightProgress) step(s nightly.Progress) {
	text := fmt.Sprintf("%d of %d", s.Done, s.Total)
	left := ""
	if s.Left > 0 && s.Done < s.Total {
		left = fmt.Sprintf(", about %v left", roughly(s.Left))
	}
	name := fmt.Sprintf("%s %s %s", p.redact.Text(s.Entry.Name()), s.Entry.Ended, s.Entry.ID[:min(shortID, len(s.Entry.ID))])
	if s.Result == nil {
		p.say(text + left + ": " + name)
		return
	}
	if p.plain == nil {
		return
	}
	what := s.Result.Kind + ", " + s.Result.Proof
	if !s.Result.Diagnosed {
		what = "not diagnosed: " + p.redact.Text(s.Result.Reason)
	}
	fmt.Fprintln(p.plain, "diagnose:", reports.Message(fmt.Sprintf("%s: %s: %s, in %v%s", text, name, what, s.Result.Took.Round(10*time.Millisecond), left)))
}

// roughly rounds a duration to the precision of an estimate.
func roughly(d time.Duration) time.Duration {
	switch {
	case d > time.Hour:
		return d.Round(10 * time.Minute)
	case d > time.Minute:
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}
