package driver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"diagnose/evidence"
	"diagnose/replay/record"
)

// unknown says why the recordings name no cause, and what to do next.
func (a *analysis) unknown() *evidence.Unknown {
	u := &evidence.Unknown{Why: a.inVain()}
	cut := a.failing[0].Log.Cut()
	for _, l := range a.result.Diagnosis.Coverage.Limits {
		if endedEarly(l) || outOfTime(l) || interrupted(l) || cut != nil && l == cut.Error() {
			u.Because = append(u.Because, l)
		}
	}
	if cut != nil && !slices.Contains(u.Because, cut.Error()) {
		u.Because = append(u.Because, cut.Error())
	}
	u.Next, u.NextWhy = a.next(cut != nil)
	return u
}

// The limits that verdict and its passes give, by their beginnings.
func endedEarly(limit string) bool {
	return strings.HasPrefix(limit, "pass ") && strings.Contains(limit, " ended early: ")
}

func outOfTime(limit string) bool { return strings.HasPrefix(limit, "the time was used up") }

func interrupted(limit string) bool { return strings.HasPrefix(limit, "it was interrupted") }

// inVain says what was done.
func (a *analysis) inVain() string {
	d, f := a.result.Diagnosis, &a.result.Failure
	switch {
	case a.killed():
		return fmt.Sprintf("another process (%d) sent %s; nothing in the program is known to have failed", f.Signal.SenderPID, f.Signal.Name)
	case f.Recursion != nil && f.Kind == evidence.StackOverflow:
		return "the stack is full of the recursion below; what should have ended it was not looked for"
	case d.Coverage.Passes == 1:
		return "1 replay of the recording found nothing that explains the failure"
	case d.Coverage.Passes > 0:
		return fmt.Sprintf("%d replays of the recording found nothing that explains the failure", d.Coverage.Passes)
	case d.Interrupted || slices.ContainsFunc(d.Coverage.Limits, outOfTime):
		return "no replay came to its end"
	case f.Exception != nil:
		return "the program gave up for the reason above, and names no memory that could be watched"
	}
	return "nothing was replayed: the process names no damaged memory, and no memory that a bad value was read from"
}

// killed reports whether another process sent the signal.
func (a *analysis) killed() bool {
	f := &a.result.Failure
	return f.Kind == evidence.KilledBySignal && f.Signal != nil && f.Signal.SenderPID != 0 && f.Signal.SenderPID != a.process.Program.PID
}

// next is the command that is most likely to find more, and why.
func (a *analysis) next(cut bool) (command, why string) {
	d := a.result.Diagnosis
	rec := a.failing[0]
	switch {
	case a.killed():
		return "diagnose replay " + ShellQuote(rec.Dir) + " --gdb", "shows what it was doing"
	case a.failedChild() != "":
		return "diagnose crash --recording " + ShellQuote(a.failedChild()), "diagnoses the child process that failed last"
	case d.Interrupted:
		return a.again(0), "does all of it"
	case slices.ContainsFunc(d.Coverage.Limits, outOfTime):
		return a.again(max(time.Minute, 4*a.req.Time)), "has more time"
	case cut:
		return recordAnew(rec)
	case slices.ContainsFunc(d.Coverage.Limits, endedEarly):
		return "diagnose replay " + ShellQuote(rec.Dir), "says where the replay leaves the recorded way and searches for a schedule that does not; what it finds is used here"
	case len(a.passing) == 0 && len(a.process.Threads) > 1:
		return "diagnose record --repeat 100 --until-fail -- " + commandLine(rec), "keeps a run that passes beside one that fails; with both, by --recording and --passing, orders of accesses can be compared"
	}
	if name := a.suspect(); name != "" {
		return "diagnose trace --recording " + ShellQuote(rec.Dir) + " --watch " + ShellQuote(name), "lists who accessed it, when"
	}
	return "diagnose replay " + ShellQuote(rec.Dir) + " --gdb", "stands at the failure"
}

func recordAnew(rec *record.Recording) (command, why string) {
	return "diagnose record --output DIRECTORY -- " + commandLine(rec), "records it anew, in a directory on a disk with more room"
}

// again is the command line of this analysis.
func (a *analysis) again(limit time.Duration) string {
	words := []string{"diagnose crash"}
	for _, dir := range a.req.Recordings {
		words = append(words, "--recording", ShellQuote(dir))
	}
	for _, dir := range a.req.Passing {
		words = append(words, "--passing", ShellQuote(dir))
	}
	if limit > 0 {
		words = append(words, "--time", limit.String())
	}
	return strings.Join(words, " ")
}

// commandLine is the recorded program's command line, quoted for a shell.
func commandLine(rec *record.Recording) string {
	var words []string
	for _, arg := range rec.Manifest.Program.Args {
		words = append(words, ShellQuote(string(arg)))
	}
	return strings.Join(words, " ")
}

// suspect is the first variable that the failing code touches and whose name can be watched; empty
// if there is none.
func (a *analysis) suspect() string {
	if a.result.Scan == nil {
		return ""
	}
	for _, s := range a.result.Scan.Suspects {
		if s.Kind == evidence.SuspectGlobal && s.Proof == evidence.FromCore && s.Type != "" && !strings.HasPrefix(s.Name, "__") { // those are the C library's
			return s.Name
		}
	}
	return ""
}

// ShellQuote quotes a text for sh(1) if it needs quotes.
func ShellQuote(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-@%,:="
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
