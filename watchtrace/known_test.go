package watchtrace_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/staticscan"
	"diagnose/watchtrace"
)

// byVariable returns the accesses by instructions of the program, by variable.
func byVariable(log *evidence.AccessLog) map[string][]string {
	lists := map[string][]string{}
	for i := range log.Accesses {
		if a := &log.Accesses[i]; a.By == evidence.ByProgram {
			name := log.Variables[a.Variable].Name
			lists[name] = append(lists[name], shown(log, a))
		}
	}
	return lists
}

func traceKnown(t *testing.T, rec *record.Recording, targets []watchtrace.Target, o watchtrace.Options) (*watchtrace.Plan, *evidence.AccessLog) {
	t.Helper()
	plan, err := watchtrace.NewPlan(rec, targets, o)
	if err != nil {
		t.Fatal(err)
	}
	log, err := plan.Trace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return plan, log
}

// TestKnown: probes at the instructions that the static scan finds see what
// watchpoints see. The log says that there may be more accesses, and which
// words changed without a seen access.
func TestKnown(t *testing.T) {
	rec, core := recorded(t, "names")
	targets := resolve(t, core, "guarded", "bare", "cfg.workers[1].state", "head->number", "cfg.name", "table")
	_, whole := trace(t, rec, targets, watchtrace.Options{})
	want := byVariable(whole)
	for name, c := range map[string]struct {
		o      watchtrace.Options
		passes int
		known  []string // those traced so
	}{
		"all of them":       {watchtrace.Options{Backend: replay.BackendProbe}, 1, []string{"guarded", "bare", "cfg.workers[1].state", "head->number", "cfg.name", "table"}},
		"beyond the passes": {watchtrace.Options{Known: true, Passes: 1}, 2, []string{"cfg.workers[1].state", "cfg.name", "table"}},
		"beyond the words":  {watchtrace.Options{Known: true, Words: 4}, 2, []string{"cfg.name", "table"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, log := traceKnown(t, rec, targets, c.o)
			if log.Passes != c.passes || len(log.Limits) == 0 || !strings.Contains(log.Backend, "probe") {
				t.Errorf("%d passes by %s, limits %+v", log.Passes, log.Backend, log.Limits)
			}
			got := byVariable(log)
			for i := range log.Variables {
				v := &log.Variables[i]
				if slices.Contains(c.known, v.Name) != (v.Instructions > 0) || v.Untraced != "" || v.Partial() != (v.Instructions > 0) {
					t.Errorf("%+v", v)
				}
				want := want[v.Name]
				if v.Name == "head->number" && v.Instructions > 0 { // what calloc does is libc's
					want = slices.DeleteFunc(slices.Clone(want), func(s string) bool { return strings.Contains(s, "0 -> 0") })
				}
				if !slices.Equal(got[v.Name], want) {
					t.Errorf("%s:\n%s\nwatchpoints saw:\n%s", v.Name, strings.Join(got[v.Name], "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}

// TestKnownBusy: a variable that is accessed too often for its pass gets a pass
// by probes, which runs to the end and keeps the accesses nearest to it.
func TestKnownBusy(t *testing.T) {
	rec, core := recorded(t, "names")
	targets := resolve(t, core, "bare", "cfg.workers[1].state")
	_, whole := trace(t, rec, targets, watchtrace.Options{})
	const hits = 4
	plan, log := traceKnown(t, rec, targets, watchtrace.Options{Known: true, Hits: hits})
	want, got := byVariable(whole), byVariable(log)
	bare, kept := want["bare"], got["bare"]
	if len(bare) < 2*hits || len(kept) < hits || len(kept) >= 2*hits || !slices.Equal(kept, bare[len(bare)-len(kept):]) {
		t.Errorf("kept of bare:\n%s\nof:\n%s", strings.Join(kept, "\n"), strings.Join(bare, "\n"))
	}
	if v := &log.Variables[0]; v.Pass != 2 || v.Lost != uint64(len(bare)-len(kept)) || log.Lost != v.Lost || v.Instructions == 0 {
		t.Errorf("%+v of %+v", v, log.Coverage)
	}
	if !slices.Equal(got["cfg.workers[1].state"], want["cfg.workers[1].state"]) {
		t.Errorf("%q, want %q", got["cfg.workers[1].state"], want["cfg.workers[1].state"])
	}
	var indices []int
	for i := range log.Accesses {
		indices = append(indices, i)
	}
	details, err := plan.Details(t.Context(), log, indices)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range details {
		a := &log.Accesses[i]
		if d.Site == nil || d.Site.Line == 0 || d.New != fmt.Sprint(int64(a.New)) && log.Variables[a.Variable].Name == "bare" {
			t.Errorf("access %d: %+v", i, d)
		}
	}
	_, log = traceKnown(t, rec, targets, watchtrace.Options{Hits: hits})
	if v := &log.Variables[0]; !strings.Contains(v.Untraced, "too often") || v.Instructions > 0 {
		t.Errorf("not asked for: %+v", v)
	}
}

// TestKnownPlaces: a variable that too many instructions access leaves its
// pass, which then may have no words. The limit of its new pass names that
// pass, and occurs once.
func TestKnownPlaces(t *testing.T) {
	rec, core := recorded(t, "places")
	for name, c := range map[string]struct {
		before, after []string // of the variable
		pass          int
	}{
		"alone":           {nil, nil, 2},
		"with another":    {nil, []string{"other"}, 2},
		"in another pass": {[]string{"wide"}, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			targets := resolve(t, core, slices.Concat(c.before, []string{"counter"}, c.after)...)
			_, log := traceKnown(t, rec, targets, watchtrace.Options{Known: true, Hits: 500})
			if v := &log.Variables[len(c.before)]; v.Pass != c.pass || v.Untraced != "" || v.Instructions == 0 || v.Hits == 0 {
				t.Errorf("%+v", v)
			}
			limits := slices.DeleteFunc(slices.Clone(log.Limits), func(l evidence.Limit) bool { return l.Code != evidence.LimitFurtherInstructions })
			if len(limits) != 1 || limits[0].Pass != c.pass {
				t.Errorf("limits %+v", log.Limits)
			}
		})
	}
}

// TestKnownCalls: accesses of system calls to variables that probes watch are in the
// log, and can be visited.
func TestKnownCalls(t *testing.T) {
	rec, core := recorded(t, "input")
	targets := resolve(t, core, "buffer", "size")
	targets[0].Size = 16
	_, whole := trace(t, rec, targets, watchtrace.Options{})
	plan, log := traceKnown(t, rec, targets, watchtrace.Options{Backend: replay.BackendProbe})
	list := func(log *evidence.AccessLog) (list []string, calls []int) {
		for i := range log.Accesses {
			a := &log.Accesses[i]
			list = append(list, fmt.Sprintf("%s+%d %s %d %#x -> %#x", log.Variables[a.Variable].Name, a.Offset, a.Kind.Kind(), a.By, a.Old, a.New))
			if a.By == evidence.ByCall {
				calls = append(calls, i)
			}
		}
		return list, calls
	}
	want, _ := list(whole)
	got, calls := list(log)
	if !slices.Equal(got, want) || len(calls) < 4 {
		t.Errorf("%d calls in:\n%s\nwatchpoints saw:\n%s", len(calls), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	details, err := plan.Details(t.Context(), log, calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range details {
		if d.Call != "read" && d.Call != "write" || d.Site == nil || d.Site.Function != "main" {
			t.Errorf("%+v", d)
		}
	}
}

// TestAccessors: the static scan finds every instruction of the program's that
// accesses a variable.
func TestAccessors(t *testing.T) {
	for name, exprs := range map[string][]string{
		"names": {"guarded", "bare", "table", "head->number", "cfg.workers[1].state"}, "kinds": {"word", "buffer", "pair"},
		"loops": {"table", "node", "total"}, "threads": {"turn", "counter", "flag", "shared"}, "control": {"target", "word", "small", "bits"},
		"handler": {"depth", "seen"},
	} {
		t.Run(name, func(t *testing.T) {
			rec, core := recorded(t, name)
			targets := resolve(t, core, exprs...)
			_, log := trace(t, rec, targets, watchtrace.Options{})
			var ranges []staticscan.Range
			for _, x := range targets {
				ranges = append(ranges, staticscan.Range{Addr: x.Addr, Size: x.Size})
			}
			const most = 1000
			list, left := staticscan.Accessors(core, ranges, most)
			if left > 0 {
				t.Errorf("%d too many", left)
			}
			seen := 0
			for i := range log.Accesses {
				a := &log.Accesses[i]
				m := core.ModuleAt(a.PC)
				if a.By != evidence.ByProgram || m == nil || image.RuntimeModule(m.Path) {
					continue
				}
				seen++
				if !slices.Contains(list, a.PC) {
					t.Errorf("%v is not among the %d instructions: %s", a.PC, len(list), shown(log, a))
				}
			}
			if seen == 0 {
				t.Error("there are no accesses")
			}
			if few, left := staticscan.Accessors(core, ranges, 2); len(few) != 2 || left != len(list)-2 || !slices.Equal(few, list[:2]) {
				t.Errorf("of %d the first two are %v", len(list), few)
			}
		})
	}
}

// TestKnownPages: where pages are protected, and are accessed more often than the budget allows, the passes of all words in them
// see the same by probes.
func TestKnownPages(t *testing.T) {
	rec, core := recorded(t, "names")
	targets := resolve(t, core, "guarded", "bare", "cfg.workers[1].state", "cfg.name", "table")
	o := watchtrace.Options{Backend: replay.BackendPages, Processes: 1}
	_, whole := trace(t, rec, targets, o)
	o.Known, o.PageStops = true, 10
	_, log := traceKnown(t, rec, targets, o)
	if log.Passes != whole.Passes || log.Backend != string(replay.BackendProbe) {
		t.Errorf("%d passes by %s, %d by pages", log.Passes, log.Backend, whole.Passes)
	}
	got, want := byVariable(log), byVariable(whole)
	for i := range log.Variables {
		v := &log.Variables[i]
		if v.Instructions == 0 || v.Untraced != "" || !v.Partial() {
			t.Errorf("%+v", v)
		}
		if !slices.Equal(got[v.Name], want[v.Name]) {
			t.Errorf("%s:\n%s\npages showed:\n%s", v.Name, strings.Join(got[v.Name], "\n"), strings.Join(want[v.Name], "\n"))
		}
	}
}
