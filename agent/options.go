package agent

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// OptionsVariable is the environment variable that the agent reads its
// settings from: NAME=VALUE, separated by colons.
const OptionsVariable = "DIAGNOSE_OPTIONS"

// Setting is one option of the agent.
type Setting struct{ Name, Value string }

// Options are settings in the order in which the agent reads them; of two with
// one name the last one counts.
type Options []Setting

// knownOptions is what src/heap/options.c takes.
var knownOptions = map[string]func(value string) error{
	"on_error":          checkOnError,
	"log_path":          checkLogPath,
	"quarantine_mb":     number(0, 65536, 1),
	"canary":            checkCanary,
	"fill_bytes":        number(0, 4096, 8),
	"fresh_byte":        number(1, 255, 1),
	"stacks":            number(1, Frames, 1),
	"check_interval_ms": number(0, math.MaxUint32, 1),
	"exitcode":          number(0, 255, 1),
}

// OptionNames are the names that Set takes, sorted.
func OptionNames() []string {
	names := make([]string, 0, len(knownOptions))
	for name := range knownOptions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ParseOptions takes the variable's text apart. It refuses nothing: the agent
// warns of what it does not know, and must be asked in its own words.
func ParseOptions(text string) Options {
	var o Options
	for part := range strings.SplitSeq(text, ":") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		o = append(o, Setting{name, value})
	}
	return o
}

// Set replaces an option. The error is for the user who gave it.
func (o *Options) Set(name, value string) error {
	check := knownOptions[name]
	if check == nil {
		return fmt.Errorf("unknown option %q: it is one of %s", name, strings.Join(OptionNames(), ", "))
	}
	if err := check(value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*o = slices.DeleteFunc(*o, func(s Setting) bool { return s.Name == name })
	*o = append(*o, Setting{name, value})
	return nil
}

// String is the variable's text.
func (o Options) String() string {
	parts := make([]string, len(o))
	for i, s := range o {
		parts[i] = s.Name + "=" + s.Value
	}
	return strings.Join(parts, ":")
}

// errorKinds are the kinds of errors that on_error can name, as src/heap/options.c has
// them.
var errorKinds = []string{"overflow", "underflow", "use-after-free", "double-free", "free-middle", "free-wild",
	"free-stack", "free-global", "free-foreign", "mismatch"}

// ErrorWords are what on_error does at an error.
var ErrorWords = []string{"abort", "log", "continue"}

// WordError is a word that an option does not take.
type WordError struct {
	Word  string
	Takes []string
}

func (e *WordError) Error() string {
	return fmt.Sprintf("it is one of %s, not %q", strings.Join(e.Takes, ", "), e.Word)
}

// KindError is a kind of error that the agent does not know.
type KindError struct {
	Kind  string
	Known []string
}

func (e *KindError) Error() string {
	return fmt.Sprintf("%q is no kind of error: it is one of %s", e.Kind, strings.Join(e.Known, ", "))
}

// checkOnError: WORD for all kinds of errors, KIND=WORD for one, separated by
// commas.
func checkOnError(value string) error {
	for part := range strings.SplitSeq(value, ",") {
		kind, word, found := strings.Cut(part, "=")
		if !found {
			word = kind
		} else if !slices.Contains(errorKinds, kind) {
			return &KindError{kind, errorKinds}
		}
		if !slices.Contains(ErrorWords, word) {
			return &WordError{word, ErrorWords}
		}
	}
	return nil
}

func checkLogPath(value string) error {
	switch {
	case value == "":
		return fmt.Errorf("the name of the file is empty")
	case len(value) > 4095: // PATH_MAX with its end
		return fmt.Errorf("the name of the file has %d bytes", len(value))
	case strings.ContainsAny(value, ":\x00"):
		return fmt.Errorf("the name of the file may not have a colon in it, which separates options")
	}
	return nil
}

// checkCanary: a byte of 0 would not be told from the end of a string that
// was written over it.
func checkCanary(value string) error {
	digits := value
	if len(value) > 2 && strings.EqualFold(value[:2], "0x") {
		digits = value[2:]
	}
	bytes, err := hex.DecodeString(digits)
	if err != nil || len(bytes) != 1 && len(bytes) != 8 || slices.Contains(bytes, 0) {
		return fmt.Errorf("it takes 1 or 8 bytes in hexadecimal, none of them 0, not %q", value)
	}
	return nil
}

func number(low, high, step uint64) func(string) error {
	takes := fmt.Sprintf("it takes a whole number from %d to %d", low, high)
	if step > 1 {
		takes = fmt.Sprintf("it takes a multiple of %d from %d to %d", step, low, high)
	}
	return func(value string) error {
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil || n < low || n > high || n%step != 0 {
			return fmt.Errorf("%s, not %q", takes, value)
		}
		return nil
	}
}
