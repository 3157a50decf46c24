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

// redactFlag is what users have replaced besides secrets.
type redactFlag struct {
	redact    []string
	redaction *reports.Redaction
}

// registerRedact is for commands whose reports never have secrets.
func (f *redactFlag) registerRedact(c *cobra.Command) {
	f.addRedact(c, "replace `what` as well: "+reports.RedactHelp+"; may be repeated")
}

// registerLocalRedact is for commands that show what was recorded as it is.
func (f *redactFlag) registerLocalRedact(c *cobra.Command) {
	f.addRedact(c, "replace secrets and `what`: "+reports.RedactHelp+"; may be repeated")
}

func (f *redactFlag) addRedact(c *cobra.Command, usage string) {
	c.Flags().StringArrayVar(&f.redact, "redact", nil, usage)
	complete(c, "redact", cobra.FixedCompletions([]string{"home", "environment"}, cobra.ShellCompDirectiveNoFileComp))
}

// checkRedact reads what the flags say.
func (f *redactFlag) checkRedact() error {
	var err error
	if f.redaction, err = reports.ParseRedaction(f.redact); err != nil {
		return usagef("--redact: %w", err)
	}
	return nil
}

// redactArgs are the flags for another command.
func (f *redactFlag) redactArgs() (args []string) {
	for _, what := range f.redact {
		args = append(args, "--redact", what)
	}
	return args
}

// redacted is a text without what the flags say; without the flag it is as it was.
func (f *redactFlag) redacted(text string) string {
	if f.redaction == nil {
		return text
	}
	return f.redaction.Text(text)
}

// show has write make an output, as JSON or as text, and replaces what the flags say in
// each line of the text, or in each value of JSON that is a string. Without the flag
// all is as it was recorded.
func (f *redactFlag) show(w io.Writer, asJSON bool, write func(io.Writer) error) error {
	if f.redaction == nil {
		return write(w)
	}
	if !asJSON {
		lines := &lineRedactor{w: w, redaction: f.redaction}
		return cmp.Or(write(lines), lines.flush())
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	out, err := redactJSON(b.Bytes(), f.redaction)
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

// lineRedactor replaces what is to be replaced in each line that is written to it.
type lineRedactor struct {
	w         io.Writer
	redaction *reports.Redaction
	rest      []byte
}

func (l *lineRedactor) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	for line := range strings.Lines(string(l.rest[:end])) {
		if _, err := io.WriteString(l.w, l.redaction.Text(strings.TrimSuffix(line, "\n"))+"\n"); err != nil {
			return 0, err
		}
	}
	l.rest = append(l.rest[:0], l.rest[end:]...)
	return len(p), nil
}

// flush writes a last line that has no end.
func (l *lineRedactor) flush() error {
	_, err := io.WriteString(l.w, l.redaction.Text(string(l.rest)))
	return err
}

// redactJSON replaces what is to be replaced in the strings of a document, but not in its
// keys, and leaves all else as it is written.
func redactJSON(text []byte, redaction *reports.Redaction) ([]byte, error) {
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
		edited := redactValue(value, before, redaction)
		if key == "base64" && between == ":" {
			edited = redactBase64(value, redaction)
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

// nextString is where the next string of a document begins and ends, -1 without one.
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

// variable is one of an environment, alone in its string.
var variable = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*=)[^\x00]`)

// redactValue replaces what is to be replaced in a string, which may stand behind another
// in a list. Where a name alone decides, all that it names is replaced: a word of a
// command behind the option that it is of, and a variable of the environment, whose
// value may have spaces.
func redactValue(value, before string, redaction *reports.Redaction) string {
	const probe, hidden = "value", "[redacted]"
	if strings.HasPrefix(before, "-") && redaction.Text(before+" "+probe) == redaction.Text(before)+" "+hidden {
		return hidden
	}
	if m := variable.FindStringSubmatch(value); m != nil && redaction.Text(`"`+m[1]+probe+`"`) == `"`+m[1]+hidden+`"` {
		return m[1] + hidden
	}
	return redaction.Text(value)
}

// redactBase64 is for what is no UTF-8.
func redactBase64(value string, redaction *reports.Redaction) string {
	data, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return redaction.Text(value)
	}
	return base64.StdEncoding.EncodeToString(redaction.Bytes(data))
}
