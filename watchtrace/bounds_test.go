package watchtrace_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/watchtrace"
)

// TestBounds cuts a log at the moments of its accesses: the parts are those of the whole.
func TestBounds(t *testing.T) {
	rec, core := recorded(t, "names")
	targets := resolve(t, core, "guarded", "cfg.workers[1].state", "cfg.name")
	_, whole := trace(t, rec, targets, watchtrace.Options{})
	all := make([]int, len(whole.Accesses))
	for i := range all {
		all[i] = i
	}
	moments := watchtrace.Moments(core, whole, all)
	cuts := 0
	for i, m := range moments {
		if i%3 != 1 && m.PC != 0 {
			continue // every third, and those right after an event
		}
		cuts++
		_, before := trace(t, rec, targets, watchtrace.Options{Until: &m})
		plan, log := trace(t, rec, targets, watchtrace.Options{From: &m})
		var after []evidence.Access
		for n := range log.Accesses {
			if plan.Since(&log.Accesses[n]) {
				after = append(after, log.Accesses[n])
			}
		}
		if len(before.Accesses)+len(after) != len(all) || len(log.Accesses) != len(all) {
			t.Errorf("%v: %d accesses before and %d after, of %d", m, len(before.Accesses), len(after), len(all))
			continue
		}
		at := len(before.Accesses)
		if m.PC != 0 && at != i {
			t.Errorf("%v is the moment of access %d, and %d are before it", m, i, at)
		}
		for n := range before.Accesses {
			if got, want := shown(before, &before.Accesses[n]), shown(whole, &whole.Accesses[n]); got != want {
				t.Errorf("%v: %s before, want %s", m, got, want)
			}
		}
		for n := range after {
			if got, want := shown(log, &after[n]), shown(whole, &whole.Accesses[at+n]); got != want {
				t.Errorf("%v: %s after, want %s", m, got, want)
			}
		}
	}
	if cuts < 4 {
		t.Errorf("%d cuts of %v", cuts, moments)
	}
}
