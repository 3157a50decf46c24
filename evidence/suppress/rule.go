package suppress

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Rule is a suppression. A failure fits it if it fits all patterns that are set.
type Rule struct {
	// Number counts the rules of a file from 1; 0 is a label's.
	Number int
	// Reason is why, Until the last day (of UTC) on which the rule suppresses.
	Reason string
	Until  time.Time
	// Signature is a signature of the failure's cause or stack, or its first characters, at least 8.
	// Kind is a kind of failure or of its first cause. In Function and Module, which are those of one
	// frame of the failing stack, * stands for any characters and ? for one.
	Signature, Kind, Function, Module string

	function, module *regexp.Regexp
}

const (
	longestText    = 1 << 10
	leastSignature = 8
)

// prepare checks a rule and compiles its patterns.
func (r *Rule) prepare() error {
	for _, text := range []string{r.Reason, r.Signature, r.Kind, r.Function, r.Module} {
		if len(text) > longestText || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			return fmt.Errorf("a text has more than %d bytes, or control characters", longestText)
		}
	}
	switch {
	case strings.TrimSpace(r.Reason) == "":
		return errors.New("it has no reason")
	case r.Until.IsZero():
		return errors.New("it has no until, the last day on which it suppresses, as in 2027-03-01")
	case r.Signature != "" && len(r.Signature) < leastSignature:
		return fmt.Errorf("its signature has fewer than %d characters", leastSignature)
	}
	r.function, r.module = glob(r.Function), glob(r.Module)
	return nil
}

// glob compiles a pattern; nil for none. Go's expressions are linear, so that no pattern is slow.
func glob(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	text := regexp.QuoteMeta(pattern)
	text = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(text)
	return regexp.MustCompile(`(?s)^` + text + `$`)
}

// Expired reports whether the rule's last day is over.
func (r *Rule) Expired(now time.Time) bool { return !now.UTC().Before(r.Until.AddDate(0, 0, 1)) }

// fits reports whether a failure fits all patterns.
func (r *Rule) fits(s *Subject) bool {
	if r.Signature == "" && r.Kind == "" && r.function == nil && r.module == nil {
		return false
	}
	return (r.Signature == "" || anyOf(s.Signatures, func(text string) bool { return strings.HasPrefix(text, r.Signature) })) &&
		(r.Kind == "" || anyOf(s.Kinds, func(text string) bool { return text == r.Kind })) &&
		(r.function == nil && r.module == nil || anyOf(s.Frames, r.fitsFrame))
}

func (r *Rule) fitsFrame(f Frame) bool {
	return (r.function == nil || f.Function != "" && r.function.MatchString(f.Function)) &&
		(r.module == nil || f.Module != "" && r.module.MatchString(f.Module))
}

func anyOf[T any](list []T, fits func(T) bool) bool {
	for i := range list {
		if fits(list[i]) {
			return true
		}
	}
	return false
}

// LabelKey is the label of a corpus that suppresses its entry. Its value is the last day and the
// reason: "2027-03-01 the disk of ci-7 is broken".
const LabelKey = "suppress"

// day is the form of a date.
const day = time.DateOnly

// ParseLabel reads the value of a label. The rule suppresses its entry, and fits no other.
func ParseLabel(value string) (Rule, error) {
	date, reason, _ := strings.Cut(value, " ")
	until, err := time.Parse(day, date)
	if err != nil {
		return Rule{}, fmt.Errorf("%.80q does not begin with a day, as in 2027-03-01", value)
	}
	r := Rule{Reason: strings.TrimSpace(reason), Until: until}
	return r, r.prepare()
}
