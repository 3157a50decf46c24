package evidence

import "testing"

// Every class has an estimate, and a severity is that of its first reason.
func TestSeverityCheck(t *testing.T) {
	good := func() *Severity {
		return &Severity{Class: ClassDestAV, Estimate: Exploitable, Proof: FromCore,
			Reasons: []SeverityReason{{Kind: ReasonAccess, Class: ClassDestAV, Estimate: Exploitable, Proof: FromCore}}}
	}
	if err := good().check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Severity){
		"no reason":        func(s *Severity) { s.Reasons = nil },
		"another class":    func(s *Severity) { s.Class = ClassSourceAV },
		"unknown class":    func(s *Severity) { s.Class, s.Reasons[0].Class = "Bad", "Bad" },
		"worse reason":     func(s *Severity) { s.Estimate = NotExploitable },
		"another proof":    func(s *Severity) { s.Proof = Inferred },
		"unknown estimate": func(s *Severity) { s.Reasons[0].Estimate = "?" },
	} {
		s := good()
		spoil(s)
		if s.check() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if NotExploitable.Rank() >= ProbablyExploitable.Rank() || ProbablyExploitable.Rank() >= Exploitable.Rank() || Exploitability("").Rank() != 0 {
		t.Error("the estimates are not in order")
	}
}
