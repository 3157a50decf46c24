package suppress

import (
	"time"

	"diagnose/evidence"
	"diagnose/evidence/signature"
)

// Subject is what rules know of a failure.
type Subject struct {
	// Signatures are those of the cause and of the stack, Kinds those of the failure and of its first
	// cause.
	Signatures, Kinds []string
	// Frames are those of the failing stack.
	Frames []Frame
}

// Frame is a function of a stack, demangled, and the path of its module; either may be empty.
type Frame struct{ Function, Module string }

// SubjectOf is that of a case, before secrets are replaced: signatures are computed from it.
func SubjectOf(c *evidence.Case) *Subject {
	s := &Subject{Kinds: []string{string(c.Failure.Kind)}}
	sig := signature.Of(c)
	for _, digest := range []string{sig.Cause, sig.Stack} {
		if digest != "" {
			s.Signatures = append(s.Signatures, digest)
		}
	}
	if c.Diagnosis != nil && len(c.Diagnosis.Causes) > 0 {
		s.Kinds = append(s.Kinds, string(c.Diagnosis.Causes[0].Kind))
	}
	for i := range c.Stacks {
		if !c.Stacks[i].Failing {
			continue
		}
		for k := range c.Stacks[i].Stack.Frames {
			site := &c.Stacks[i].Stack.Frames[k].Site
			s.Frames = append(s.Frames, Frame{evidence.ShortName(site.Function), site.Module})
		}
	}
	return s
}

// Suppress notes in a case the rule that fits it, if one does.
func (l *List) Suppress(c *evidence.Case, now time.Time) {
	if l == nil {
		return
	}
	rule, expired := l.Match(SubjectOf(c), now)
	switch {
	case rule != nil:
		c.Suppression = &evidence.Suppression{Reason: rule.Reason, Until: rule.Until.Format(day), Entry: rule.Number}
	case expired != nil:
		c.Suppression = &evidence.Suppression{Reason: expired.Reason, Until: expired.Until.Format(day), Entry: expired.Number, Expired: true}
	}
}
