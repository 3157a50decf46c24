package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"diagnose/reports"
)

// redactFlag is the text that users want replaced in addition to secrets.
type redactFlag struct {
	redact    []string
	redaction *reports.Redaction
	// redactor applies the flag to output; nil without the flag.
	redactor *reports.Redactor
}

// registerRedact is for commands whose reports never have secrets.
func (f *redactFlag) registerRedact(c *cobra.Command) {
	f.addRedact(c, "replace `what` as well: "+reports.RedactHelp+"; may be repeated")
}

// registerLocalRedact is for commands that show recorded data unchanged by default.
func (f *redactFlag) registerLocalRedact(c *cobra.Command) {
	f.addRedact(c, "replace secrets and `what`: "+reports.RedactHelp+"; may be repeated")
}

func (f *redactFlag) addRedact(c *cobra.Command, usage string) {
	c.Flags().StringArrayVar(&f.redact, "redact", nil, usage)
	complete(c, "redact", cobra.FixedCompletions([]string{"home", "environment"}, cobra.ShellCompDirectiveNoFileComp))
}

// checkRedact parses the values of the flags.
func (f *redactFlag) checkRedact() error {
	var err error
	if f.redaction, err = reports.ParseRedaction(f.redact); err != nil {
		return usagef("--redact: %w", err)
	}
	if f.redaction != nil {
		f.redactor = f.redaction.Redactor()
	}
	return nil
}

// redactArgs returns the flags for another command.
func (f *redactFlag) redactArgs() (args []string) {
	for _, what := range f.redact {
		args = append(args, "--redact", what)
	}
	return args
}

// redacted replaces the values of the flags in a text. Without the flag it returns the text
// unchanged.
func (f *redactFlag) redacted(text string) string {
	if f.redactor == nil {
		return text
	}
	return f.redactor.Text(text)
}

// show calls write for an output in JSON or text, and replaces the values of the flags in each line
// of the text, or in each string value of the JSON. Without the flag the output is unchanged.
func (f *redactFlag) show(w io.Writer, asJSON bool, write func(io.Writer) error) error {
	if f.redactor == nil {
		return write(w)
	}
	if !asJSON {
		lines := &lineRedactor{w: w, redactor: f.redactor}
		return cmp.Or(write(lines), lines.flush())
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	out, err := redactJSON(b.Bytes(), f.redaction, f.redactor)
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

// lineRedactor redacts each line that is written to it. It holds back the first lines: a secret
// that a later line reveals is replaced in them as well.
type lineRedactor struct {
	w        io.Writer
	redactor *reports.Redactor
	rest     []byte
	through  bool // lines are no longer held back
}

// mostHeld bounds the bytes that are held back.
const mostHeld = 4 << 20

func (l *lineRedactor) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	if !l.through && len(l.rest) < mostHeld {
		return len(p), nil
	}
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if err := l.writeLines(string(l.rest[:end])); err != nil {
		return 0, err
	}
	l.rest = append(l.rest[:0], l.rest[end:]...)
	return len(p), nil
}

func (l *lineRedactor) writeLines(text string) error {
	if !l.through {
		l.through = true
		for line := range strings.Lines(text) {
			l.redactor.Learn(strings.TrimSuffix(line, "\n"))
		}
	}
	for line := range strings.Lines(text) {
		alone, ended := strings.CutSuffix(line, "\n")
		if alone = l.redactor.Text(alone); ended {
			alone += "\n"
		}
		if _, err := io.WriteString(l.w, alone); err != nil {
			return err
		}
	}
	return nil
}

// flush writes the lines that are held back, and a last line without a newline.
func (l *lineRedactor) flush() error { return l.writeLines(string(l.rest)) }

// redactJSON redacts the string values of a document, but not its keys, and leaves all else as it
// is written.
func redactJSON(text []byte, redaction *reports.Redaction, redactor *reports.Redactor) ([]byte, error) {
	if _, err := redactStrings(text, redaction, redactor); err != nil { // learns
		return nil, err
	}
	return redactStrings(text, redaction, redactor)
}

func redactStrings(text []byte, redaction *reports.Redaction, redactor *reports.Redactor) ([]byte, error) {
	var out bytes.Buffer
	key, before, last := "", "", 0
	for {
		start, end := nextString(text, last)
		if start < 0 {
			out.Write(text[last:])
			return out.Bytes(), nil
		}
		var value string
		if err := json.Unmarshal(text[start:end], &value); err != nil {
			return nil, fmt.Errorf("the report's JSON: %w", err)
		}
		between := strings.TrimSpace(string(text[last:start]))
		out.Write(text[last:start])
		last = end
		switch {
		case bytes.HasPrefix(bytes.TrimLeft(text[end:], " \n"), []byte(":")):
			key, before = value, ""
			out.Write(text[start:end])
			continue
		case between != ",": // it is the first of its list, or no part of one
			before = ""
		}
		edited := redactValue(value, before, redaction, redactor)
		if key == "base64" && between == ":" {
			edited = redactBase64(value, redactor)
		}
		before = value
		if edited == value {
			out.Write(text[start:end])
			continue
		}
		quoted, err := json.Marshal(edited)
		if err != nil {
			return nil, err
		}
		out.Write(quoted)
	}
}

// nextString returns where the next string of a document begins and ends, -1 if there is none.
func nextString(text []byte, from int) (start, end int) {
	i := bytes.IndexByte(text[from:], '"')
	if i < 0 {
		return -1, -1
	}
	start = from + i
	for end = start + 1; end < len(text) && text[end] != '"'; end++ {
		if text[end] == '\\' {
			end++
		}
	}
	return start, min(end+1, len(text))
}

// variable matches a variable of an environment that is alone in its string.
var variable = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*=)[^\x00]`)

// redactValue redacts a string, which may follow another string in a list. If a name alone decides,
// the whole value of that name is replaced: the argument that follows an option, and a variable of
// the environment, whose value may have spaces.
func redactValue(value, before string, redaction *reports.Redaction, redactor *reports.Redactor) string {
	const probe, hidden = "v4lue", "[redacted]" // no word of a sentence
	if strings.HasPrefix(before, "-") && redaction.Text(before+" "+probe) == redaction.Text(before)+" "+hidden {
		redactor.Learn(before + " " + value)
		return hidden
	}
	if m := variable.FindStringSubmatch(value); m != nil && redaction.Text(`"`+m[1]+probe+`"`) == `"`+m[1]+hidden+`"` {
		redactor.Learn(value)
		return m[1] + hidden
	}
	return redactor.Text(value)
}

// redactBase64 redacts bytes that are not valid UTF-8.
func redactBase64(value string, redactor *reports.Redactor) string {
	data, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return redactor.Text(value)
	}
	return base64.StdEncoding.EncodeToString(redactor.Bytes(data))
}
