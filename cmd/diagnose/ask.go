package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"diagnose/ask"
	"diagnose/ask/show"
	"diagnose/evidence"
	"diagnose/internal/wording"
)

// askFlags are the flags of ask.
type askFlags struct {
	// forms are the things asked about by the name of their flag.
	forms map[ask.Form]*string
	// from and until are moments.
	from, until               string
	recording, format, output string
	most                      int
	redactFlag
}

// The forms of the answer to a question.
const (
	askText = "text"
	askJSON = "json"
	askHTML = "html"
)

// askForms are the forms in the order of the help.
var askForms = []struct {
	form  ask.Form
	usage string
}{
	{ask.FormLastWrite, "the last write of an `expression`, with its stack"},
	{ask.FormWrites, "all writes of an `expression`"},
	{ask.FormValues, "the values of an `expression` over time"},
	{ask.FormCalls, "the calls of a `function`, with arguments and results"},
	{ask.FormExecuted, "when a line, `FILE:LINE`, was executed"},
	{ask.FormDid, "what a `thread` did: calls, locks, system calls, signals"},
	{ask.FormHolders, "which threads held a `lock`, an expression, and when"},
}

func newAsk() *cobra.Command {
	f := &askFlags{forms: map[ask.Form]*string{}}
	c := &cobra.Command{
		Use:   "ask --recording RECORDING --QUESTION WHAT",
		Short: "Ask a recording for writes, values, calls, deeds of threads and holders of locks",
		Long: `ask answers one question about a recording, by replaying it:

    --last-write EXPR      the write that was the last, with the stack
    --writes EXPR          every write, with the values before and after
    --values EXPR          its values over time
    --calls FUNCTION       every call, with arguments and result
    --executed FILE:LINE   every time that the line was executed
    --did THREAD           calls of functions, locks, system calls and signals of a
                           thread, given by its number or the function it started with
    --holders LOCK         which threads held a mutex, rwlock or spin lock, and when

--from and --until bound the span of the recording; it ends right
before --until, which is the failure, or the end, unless it is given. A moment is
THREAD:EVENT[:PC[:COUNT]], as reports, probe and ask itself print it, and as 'diagnose
replay --until' takes it.

EXPR is an expression of C with the program's names and types, as for probe. It means
what it means at the end of the span: local variables are those of
the calls of that thread, the innermost first, and pointers lead to where they lead
then. malloc@FILE:LINE#N and ADDRESS:LENGTH are memory, as for trace. A write to the
same memory when it was another object, or of another call, is no write of EXPR.

The last lines say what the answer covers. "nothing wrote it" is said only if all
writes were seen; otherwise that none was seen, and what may be missing.

html is a page with a timeline, a row for each thread.

Exit status:

      0  the question was answered, even if nothing happened
      1  the tool itself failed
      2  the command line is wrong: there is no such variable, function, line, thread
         or moment, or the expression has no value there
      3  the recording cannot be used here: it is damaged, or the program changed
      4  the replay diverged from the recording or got stuck; the rows up to there
         are shown
    130  it was interrupted`,
		Example: `  diagnose ask --recording recordings/server-0001-SIGSEGV --last-write 'q->head->key'
  diagnose ask --recording recordings/server-0001-SIGSEGV --holders q->lock --from 2:100 --until 3:1204:0x401156
  diagnose ask --recording recordings/server-0001-SIGSEGV --did 3 --from 3:1100 --format html -o thread3.html`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return f.askRecording(c) },
	}
	f.register(c)
	return c
}

func (f *askFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.recording, "recording", "", "`directory` that 'diagnose record' made")
	for _, x := range askForms {
		f.forms[x.form] = flags.String(string(x.form), "", x.usage)
		complete(c, string(x.form), cobra.NoFileCompletions)
	}
	flags.StringVar(&f.from, "from", "", "ask about what happened from this `moment` on")
	flags.StringVar(&f.until, "until", "", "ask about what happened before this `moment`")
	flags.IntVar(&f.most, "max", 1000, "show at most this `many` rows; 0: all")
	flags.StringVarP(&f.format, "format", "f", askText, "`form` of the answer: text, json, html")
	flags.StringVarP(&f.output, "output", "o", "", "write the answer to `file`, which only you can read, instead of standard output")
	f.registerLocalRedact(c)
	must(c.MarkFlagDirname("recording"))
	choices(c, "format", askText, askJSON, askHTML)
	for _, name := range []string{"from", "until", "max"} {
		complete(c, name, cobra.NoFileCompletions)
	}
}

// question makes the question that the flags ask.
func (f *askFlags) question(c *cobra.Command) (*ask.Question, error) {
	hint := fmt.Sprintf("see '%s --help'", c.CommandPath())
	q := &ask.Question{Most: f.most}
	asked := 0
	for _, x := range askForms {
		if c.Flags().Changed(string(x.form)) {
			asked++
			q.Form, q.Asked = x.form, *f.forms[x.form]
		}
	}
	switch {
	case f.recording == "":
		return nil, usagef("ask needs --recording (%s)", hint)
	case asked == 0:
		return nil, usagef("nothing is asked: give one of --last-write, --writes, --values, --calls, --executed, --did, --holders (%s)", hint)
	case asked > 1:
		return nil, usagef("%d questions are asked; give one (%s)", asked, hint)
	case q.Asked == "":
		return nil, usagef("--%s: it is empty (%s)", q.Form, hint)
	case f.most < 0:
		return nil, usagef("--max takes numbers from 0 on (%s)", hint)
	}
	for _, x := range []struct {
		flag, text string
		moment     **evidence.Moment
	}{{"from", f.from, &q.From}, {"until", f.until, &q.Until}} {
		if x.text == "" {
			continue
		}
		m, err := evidence.ParseMoment(x.text)
		if err != nil {
			return nil, usagef("--%s: %s", x.flag, err)
		}
		*x.moment = &m
	}
	if err := f.checkRedact(); err != nil {
		return nil, err
	}
	return q, checkOutput(f.output)
}

func (f *askFlags) askRecording(c *cobra.Command) error {
	q, err := f.question(c)
	if err != nil {
		return err
	}
	rec, err := openRecording(c.Context(), f.recording)
	if err != nil {
		return err
	}
	defer rec.Close()
	progress := newProgress(os.Stderr)
	defer progress.clear()
	q.Progress = func(p ask.Progress) { progress.say(askProgress(&p)) }
	answer, err := ask.Ask(c.Context(), rec, q)
	var wrong *ask.Error
	switch {
	case errors.As(err, &wrong):
		return usagef("--%s %s", q.Form, wording.Bare(wrong))
	case answer == nil:
		return err
	}
	progress.clear()
	if err := f.write(c.OutOrStdout(), answer); err != nil {
		return err
	}
	if why := cutShort(answer, err); why != "" {
		say(f.redacted(why))
		return &notReplayedError{}
	}
	return nil
}

// cutShort says why the answer does not reach the end of the span; empty: it does.
func cutShort(a *ask.Answer, err error) string {
	if err != nil {
		return wording.Bare(err)
	}
	if l := evidence.LimitOf(a.Coverage.Limits, evidence.LimitPassEnded); l != nil {
		return l.Text
	}
	return ""
}

// askProgress is a line for each stage.
func askProgress(p *ask.Progress) string {
	switch p.Stage {
	case ask.StageWatch:
		return fmt.Sprintf("watching, pass %d of %d, %s", min(p.Done+1, p.Total), p.Total, wording.Count(p.Rows, "write"))
	case ask.StageDetails:
		return "replaying to the write"
	case ask.StageReplay:
		return fmt.Sprintf("replaying, %d of %d events, %s", p.Done, p.Total, wording.Count(p.Rows, "row"))
	}
	return "looking for the subject of the question"
}

// askVersion is the version of shownAnswer. reports/schema/ask-1.json describes it.
const askVersion = "1.0"

// shownAnswer is the JSON of an answer. Fields are added and never change their meaning.
type shownAnswer struct {
	// Version of this form, MAJOR.MINOR.
	Version string `json:"version"`
	ask.Answer
}

func (f *askFlags) write(w io.Writer, a *ask.Answer) error {
	var b bytes.Buffer
	form := map[string]func(io.Writer) error{
		askText: func(w io.Writer) error { return show.Text(w, a) },
		askHTML: func(w io.Writer) error { return show.HTML(w, a, version()) },
		askJSON: func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			return e.Encode(shownAnswer{askVersion, *a})
		},
	}[f.format]
	if err := f.show(&b, f.format == askJSON, form); err != nil {
		return err
	}
	return putReport(w, f.output, b.Bytes())
}
