package reports

import (
	"regexp"

	"diagnose/evidence"
)

const redactedMark = "[redacted]"

// secretPatterns find secrets by their form. Group 1 is kept, the rest of the
// match is replaced.
var secretPatterns = []*regexp.Regexp{
	regexp.MustCompile(`(?i)((?:^|[\s"'?&;{,/_-])(?:[a-z0-9]+[_-])*(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)["']?\s*[=:]\s*["']?)[^\s"'&;,}]+`),
	regexp.MustCompile(`(?i)((?:^|\s)--?(?:[a-z0-9]+-)*(?:password|passwd|passphrase|secret|token|api-?key|access-?key|private-?key)\s+)\S+`),
	regexp.MustCompile(`(?i)(\bauthorization:\s*(?:basic|bearer|digest|token)?\s*)[^\s"']+`),
	regexp.MustCompile(`(?i)(\bbearer\s+)[a-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?:@)`),
	regexp.MustCompile(`()\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`),
	regexp.MustCompile(`()\bgh[pousr]_[A-Za-z0-9]{20,}\b`),
	regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+`),
	regexp.MustCompile(`()-----BEGIN [A-Z ]*PRIVATE KEY-----.*`),
}

// secretName finds variables whose value is a secret whatever its form.
var secretName = regexp.MustCompile(`(?i)(?:password|passwd|passphrase|secret|api_?key|private_?key|auth_?token|access_?token|credential)`)

func redactText(text string) string {
	for _, p := range secretPatterns {
		text = p.ReplaceAllString(text, "${1}"+redactedMark)
	}
	return text
}

// redacted returns a copy of c in which secrets are replaced. Parts without
// text of the target's own are shared with c.
func redacted(c *evidence.Case) *evidence.Case {
	out := *c
	out.Program.Args = redactText(c.Program.Args)
	out.Failure = redactFailure(c.Failure)
	out.Findings = mapped(c.Findings, redactFinding)
	out.Stacks = mapped(c.Stacks, func(g evidence.ThreadGroup) evidence.ThreadGroup {
		g.Stack = redactStack(g.Stack)
		return g
	})
	out.Goroutines = mapped(c.Goroutines, func(g evidence.Goroutine) evidence.Goroutine {
		g.Stack = redactStack(g.Stack)
		return g
	})
	if c.Scan != nil {
		scan := *c.Scan
		scan.Suspects = mapped(scan.Suspects, func(s evidence.Suspect) evidence.Suspect {
			s.Value = redactValue(s.Name, s.Value)
			return s
		})
		out.Scan = &scan
	}
	return &out
}

func redactFailure(f evidence.Failure) evidence.Failure {
	f.Sentence = redactText(f.Sentence)
	f.Message = redactText(f.Message)
	if f.Exception != nil {
		e := *f.Exception
		e.What = redactText(e.What)
		f.Exception = &e
	}
	if f.Instruction != nil {
		i := *f.Instruction
		i.Operands = mapped(i.Operands, func(o evidence.Operand) evidence.Operand {
			o.Value = redactValue(o.Symbol, o.Value)
			return o
		})
		f.Instruction = &i
	}
	if f.Source != nil {
		s := *f.Source
		s.Lines = mapped(s.Lines, func(l evidence.SourceLine) evidence.SourceLine {
			l.Text = redactText(l.Text)
			return l
		})
		f.Source = &s
	}
	return f
}

func redactFinding(f evidence.Finding) evidence.Finding {
	f.Facts = mapped(f.Facts, func(x evidence.Fact) evidence.Fact {
		x.Text = redactText(x.Text)
		return x
	})
	return f
}

func redactStack(s evidence.Stack) evidence.Stack {
	s.Frames = mapped(s.Frames, func(f evidence.Frame) evidence.Frame {
		f.Args = mapped(f.Args, redactVariable)
		f.Locals = mapped(f.Locals, redactVariable)
		return f
	})
	return s
}

func redactVariable(v evidence.Variable) evidence.Variable {
	v.Value = redactValue(v.Name, v.Value)
	return v
}

// redactValue replaces the strings of a value; the fields of a variable with
// a secret's name are secrets as well. Addresses stay: they are evidence.
func redactValue(variable string, v evidence.Value) evidence.Value {
	if secretName.MatchString(variable) {
		return redactStrings(v)
	}
	v.Text = redactText(v.Text)
	v.Fields = mapped(v.Fields, redactVariable)
	return v
}

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"(?:\.\.\.)?`)

func redactStrings(v evidence.Value) evidence.Value {
	v.Text = quoted.ReplaceAllString(v.Text, `"`+redactedMark+`"`)
	v.Fields = mapped(v.Fields, func(f evidence.Variable) evidence.Variable {
		f.Value = redactStrings(f.Value)
		return f
	})
	return v
}

// mapped returns f of each element in a new slice; nil stays nil, so that
// JSON does not tell a redacted case from another.
func mapped[T any](list []T, f func(T) T) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}
