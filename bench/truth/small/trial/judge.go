package trial

import (
	"strings"

	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/small/program"
	"diagnose/evidence"
)

// judge is that of package score. Of an order of accesses it wants two of the bug's, as one of
// them alone may be in many orders that are none. Of a bug of threads, a cause that is said to be proved has to be the bug: a store
// that handed on a value read too early is none, though its story has the read.
func judge(c *evidence.Case, answer *mutant.Answer, p *program.Program) score.Score {
	s := score.Judge(c, answer)
	if !p.Concurrent() || c.Diagnosis == nil || len(c.Diagnosis.Causes) == 0 {
		return s
	}
	first := &c.Diagnosis.Causes[0]
	if first.Interleaving == nil {
		if s.Proved && s.Outcome == score.Root {
			s.Outcome = score.WrongProved
		}
		return s
	}
	right := 0
	for i := range first.Interleaving.Failing {
		if access := &first.Interleaving.Failing[i]; atBug(access, answer) || isMember(access.Variable, p.Variable) {
			right++
		}
	}
	switch {
	case right >= 2:
		s.Outcome = score.Right
	case s.Outcome == score.Right && s.Proved:
		s.Outcome = score.WrongProved
	case s.Outcome == score.Right:
		s.Outcome = score.Wrong
	}
	return s
}

// atBug reports whether an access is at a line of the bug.
func atBug(access *evidence.SeenAccess, answer *mutant.Answer) bool {
	one := evidence.Case{Diagnosis: &evidence.Diagnosis{Causes: []evidence.Cause{{Site: access.Site}}}}
	return score.Judge(&one, answer).Outcome == score.Right
}

// isMember reports whether a name in a report is that of a member.
func isMember(name, member string) bool {
	return member != "" && (strings.HasSuffix(name, "."+member) || strings.HasSuffix(name, "->"+member))
}
