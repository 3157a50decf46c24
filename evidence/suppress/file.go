package suppress

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/BurntSushi/toml"
)

// List is the suppressions of a file. A nil list suppresses nothing.
type List struct {
	Rules []Rule
}

const (
	mostBytes = 1 << 20
	mostRules = 1000
)

// Read reads a file of suppressions, of at most 1 MiB and 1,000 entries.
func Read(name string) (*List, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}

// Parse reads suppressions: a table [[suppress]] of TOML 1.0 for each. A key that is not known is an
// error, as a misspelt pattern would suppress too much.
func Parse(text []byte) (*List, error) {
	if len(text) > mostBytes {
		return nil, errors.New("it has more than a MiB")
	}
	var file struct {
		Suppress []struct {
			Reason, Signature, Kind, Function, Module string
			Until                                     time.Time
		}
	}
	meta, err := toml.Decode(string(text), &file)
	if err != nil {
		return nil, err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("%.80q is not known: an entry has reason, until, signature, kind, function and module", unknown[0].String())
	}
	if len(file.Suppress) > mostRules {
		return nil, fmt.Errorf("it has more than %d entries", mostRules)
	}
	l := &List{}
	for i, e := range file.Suppress {
		r := Rule{Number: i + 1, Reason: e.Reason, Signature: e.Signature, Kind: e.Kind, Function: e.Function, Module: e.Module}
		if !e.Until.IsZero() {
			r.Until = time.Date(e.Until.Year(), e.Until.Month(), e.Until.Day(), 0, 0, 0, 0, time.UTC)
		}
		if err := r.prepare(); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		if r.Signature == "" && r.Kind == "" && r.Function == "" && r.Module == "" {
			return nil, fmt.Errorf("entry %d: it has no signature, kind, function or module, and would suppress everything", i+1)
		}
		l.Rules = append(l.Rules, r)
	}
	return l, nil
}

// NeedsStacks reports whether signatures alone do not decide.
func (l *List) NeedsStacks() bool {
	return l != nil && anyOf(l.Rules, func(r Rule) bool { return r.Kind != "" || r.Function != "" || r.Module != "" })
}

// Match returns the first rule that suppresses a failure. If none does, expired is the first that did
// until its last day. Each may be nil.
func (l *List) Match(s *Subject, now time.Time) (rule, expired *Rule) {
	if l == nil {
		return nil, nil
	}
	for i := range l.Rules {
		r := &l.Rules[i]
		switch {
		case !r.fits(s):
		case !r.Expired(now):
			return r, nil
		case expired == nil:
			expired = r
		}
	}
	return nil, expired
}
