package driver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
	"diagnose/replay/record"
)

// advice says which facts of a failure are not known, and which command is likely to find more.
type advice struct {
	*recordings
	req     *Request
	result  *evidence.Case
	process *image.Process
}

func newAdvice(req *Request, rs *recordings, c *evidence.Case, p *image.Process) *advice {
	return &advice{rs, req, c, p}
}

// unknown says why the recordings name no cause, and what to do next.
func (a *advice) unknown() *evidence.Unknown {
	u := &evidence.Unknown{Why: a.inVain()}
	for _, l := range a.result.Diagnosis.Coverage.Limits {
		if slices.Contains(shortened, l.Code) {
			u.Because = append(u.Because, l)
		}
	}
	cut := a.failing[0].Log.Cut()
	if cut != nil {
		u.Because = evidence.AddLimit(u.Because, cutLimit(cut))
	}
	u.Next, u.NextWhy = a.next(cut != nil)
	u.Why, u.NextWhy = evidence.Say(u.Why), evidence.Say(u.NextWhy)
	return u
}

// shortened are the limits that show less than the recorded run.
var shortened = []evidence.LimitCode{evidence.LimitPassEnded, evidence.LimitTime, evidence.LimitInterrupted, evidence.LimitRecordingCut}

// cutLimit is the limit of a recording that ends before its run did.
func cutLimit(cut error) evidence.Limit {
	return evidence.Limit{Code: evidence.LimitRecordingCut, Reason: wording.Bare(cut)}
}

// inVain lists the work that found no cause.
func (a *advice) inVain() string {
	d, f := a.result.Diagnosis, &a.result.Failure
	switch {
	case a.killed():
		return fmt.Sprintf("another process (%d) sent %s; nothing in the program is known to have failed", f.Signal.SenderPID, f.Signal.Name)
	case f.Recursion != nil && f.Kind == evidence.StackOverflow:
		return "the stack is full of the recursion below, which is not known to go around in a cycle of pointers; what should have ended it was not looked for"
	case len(d.Leads) > 0 && d.Leads[0].Open == evidence.OpenUntested:
		return "an order of accesses may explain the failure, as told below, and no experiment decided whether it does"
	case len(d.Leads) > 0 && d.Leads[0].Open == evidence.OpenOtherWay:
		return "runs that pass went another way, as told below, and nothing says whether that of the failing run is wrong"
	case len(d.Leads) > 0 && d.Leads[0].Open == evidence.OpenApart:
		return "memory was used after its life, as told below, and the run fails in the same way without that"
	case len(d.Leads) > 0:
		return "a bad value was followed, as told below, but not to a place that is known to be wrong"
	case d.Coverage.Passes == 1:
		return "1 replay of the recording found nothing that explains the failure"
	case d.Coverage.Passes > 0:
		return fmt.Sprintf("%d replays of the recording found nothing that explains the failure", d.Coverage.Passes)
	case d.Interrupted || evidence.LimitOf(d.Coverage.Limits, evidence.LimitTime) != nil:
		return "no replay reached its end"
	case f.Exception != nil:
		return "the program gave up for the reason above, and names no memory that could be watched"
	}
	return "nothing was replayed: the process names no damaged memory, and no memory that a bad value was read from"
}

// killed reports whether another process sent the signal.
func (a *advice) killed() bool {
	f := &a.result.Failure
	return f.Kind == evidence.KilledBySignal && f.Signal != nil && f.Signal.SenderPID != 0 && f.Signal.SenderPID != a.process.Program.PID
}

// next is the command that is most likely to find more, and why.
func (a *advice) next(cut bool) (command, why string) {
	d := a.result.Diagnosis
	rec := a.failing[0]
	switch {
	case a.killed():
		return "diagnose replay " + ShellQuote(rec.Dir) + " --gdb", "shows what it was doing"
	case a.failedChild() != "":
		return "diagnose crash --recording " + ShellQuote(a.failedChild()), "diagnoses the child process that failed last"
	case d.Interrupted:
		return a.again(0), "does all of it"
	case evidence.LimitOf(a.result.Limits, evidence.LimitSchedule) != nil && rec.Manifest.Turns == nil:
		return "diagnose record --races=turns --repeat 100 --until-fail -- " + commandLine(rec), "records which thread ran when as well, so that its replay needs no search for a schedule"
	case evidence.LimitOf(d.Coverage.Limits, evidence.LimitTime) != nil:
		return a.again(max(time.Minute, 4*a.req.Time)), "has more time"
	case cut:
		return recordAnew(rec)
	case evidence.LimitOf(d.Coverage.Limits, evidence.LimitPassEnded) != nil:
		return "diagnose replay " + ShellQuote(rec.Dir), "says where the replay diverges from the recording, and searches for a schedule that does not; crash uses the schedule that it finds"
	case len(a.passing) == 0 && len(a.process.Threads) > 1:
		return "diagnose record --repeat 100 --until-fail -- " + commandLine(rec), "keeps a run that passes and one that fails; with both, by --recording and --passing, orders of accesses can be compared"
	}
	if name := a.suspect(); name != "" {
		return "diagnose trace --recording " + ShellQuote(rec.Dir) + " --watch " + ShellQuote(name), "lists which threads accessed it, when"
	}
	return "diagnose replay " + ShellQuote(rec.Dir) + " --gdb", "stops at the failure"
}

func recordAnew(rec *record.Recording) (command, why string) {
	return "diagnose record --output DIRECTORY -- " + commandLine(rec), "records it again, in a directory on a disk with more room"
}

// again is the command line of this analysis.
func (a *advice) again(limit time.Duration) string {
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
func (a *advice) suspect() string {
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

// failedChild is the recording of the last child process that failed before this one, which
// exited with a status; empty if there is none.
func (a *advice) failedChild() string {
	if a.exit == nil || a.result.Run == nil {
		return ""
	}
	for _, p := range slices.Backward(a.result.Run.Processes) {
		if !p.Here && !p.First && !p.Unrecorded && p.Recording != "" {
			return p.Recording
		}
	}
	return ""
}

// cutUnknown says what a recording without a core and without its end lacks.
func (a *advice) cutUnknown() *evidence.Unknown {
	rec := a.failing[0]
	u := &evidence.Unknown{Why: "the recording does not have the failure"}
	if cut := rec.Log.Cut(); cut != nil {
		u.Because = evidence.AddLimit(u.Because, cutLimit(cut))
	}
	for _, l := range rec.Manifest.Limits {
		u.Because = append(u.Because, evidence.Limit{Code: evidence.LimitOfRecording, Kind: l.Kind, Reason: l.Text}.Worded())
	}
	u.Next, u.NextWhy = "diagnose replay "+ShellQuote(rec.Dir)+" --gdb", "stops where the recording ends, with all variables"
	if rec.Manifest.Outcome.Kind == record.OutcomeCut {
		u.Next, u.NextWhy = recordAnew(rec)
	}
	return u
}
