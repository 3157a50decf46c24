package verdict

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/accesslog"
	"diagnose/patterns"
)

// TestPassesBefore: that a write must come before the failing check is refuted by a check of the same words that passed before it.
func TestPassesBefore(t *testing.T) {
	const begin = "main t1\nt1 create t2 worker\nt1 create t3 worker\n"
	const fails = "t2 R done 0 @10\nt2 R count 0 @11\nt2 R done 0 @12\n"
	const passes = "t2 R count 1 @11\nt1 W done 0->1 @30\n"
	for _, x := range []struct {
		name, failing, passing string
		never                  bool
		want                   bool
	}{
		{"the first check", fails, "t1 W done 0->1 @30\nt2 R count 1 @11\n", true, false},
		{"an earlier one of the thread", "t2 R count 1 @11\nt2 event\n" + fails, "t1 W done 0->1 @30\n", true, true},
		{"two reads of one check", "t2 R count 0 @11\n" + fails, "t1 W done 0->1 @30\n", true, false},
		{"another thread, that went on", "t3 R count 1 @11\nt3 event\nt3 R done 0 @10\n" + fails, "t1 W done 0->1 @30\n", true, true},
		{"another thread, that may fail as well", "t3 R count 0 @11\n" + fails, "t1 W done 0->1 @30\n", true, false},
		{"of a passing run", fails, passes, true, true},
		{"of a passing run, other words", fails, "t2 R other 1 @11\nt1 W done 0->1 @30\n", true, false},
		{"of a passing run, another place", fails, "t2 R count 1 @19\nt1 W done 0->1 @30\n", true, false},
		{"the write came, after a check that passed", "t2 R count 1 @11\nt2 event\n" + fails + "t1 W done 0->1 @30\n", "", false, true},
		{"the write came, and the check passed after it", "t1 W done 0->1 @30\nt2 R count 1 @11\nt2 event\n" + fails, "", false, false},
	} {
		r := flowRace(begin+x.failing, "count")
		c := &patterns.Candidate{Variables: []string{"done"}, Never: x.never}
		log := r.failing[0].log
		for i := range log.Accesses {
			a := &log.Accesses[i]
			switch of := log.Variables[a.Variable].Name; {
			case of == "count":
				r.Blame.Loaded.PC = a.PC
			case a.Kind == evidence.CodeWrite || a.Thread == 2 && len(c.Accesses) == 0:
				c.Accesses = append(c.Accesses, i)
			}
		}
		if x.passing != "" {
			passing := accesslog.Log("run passed\n" + begin + x.passing)
			r.passing = []traced{{log: passing}}
			for i := range passing.Accesses {
				if passing.Accesses[i].Kind == evidence.CodeWrite {
					c.Passing = []int{i}
				}
			}
		}
		if got := r.passesBefore(c); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}

// TestPassedWithout: a check that passes by its other reads does not need the variable.
func TestPassedWithout(t *testing.T) {
	for text, want := range map[string]bool{
		"t2 R count 1 @11\nt2 R item 1 @12\n":                                 true,
		"t2 R count 0 @11\nt2 R done 1 @11\nt2 R item 1 @12\n":                false,
		"t2 R count 0 @11\nt3 R item 1 @12\nt2 R done 1 @11\n":                false,
		"t2 R count 0 @11\nt2 R limit 1 @11\nt2 R done 1 @11\nt2 R item 1 @9": false,
		"t2 R count 1 @11\n": false, // where the log ends is not known
	} {
		log := accesslog.Log("run passed\nmain t1\nt1 create t2 worker\nt1 create t3 worker\n" + text)
		checks := checkReads{}
		for i := range log.Accesses {
			if name := log.Variables[log.Accesses[i].Variable].Name; name != "item" {
				checks[checkReadOf(log, &log.Accesses[i])] = true
			}
		}
		checks[checkRead{variable: "done"}] = true
		if got := checks.passedWithout(log, "done"); got != want {
			t.Errorf("%q: %v", text, got)
		}
		if checks.passedWithout(log, "item") {
			t.Errorf("%q: a variable that the check does not read", text)
		}
	}
}
