package watchtrace_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

func TestMain(m *testing.M) { recordtest.Main(m) }

// recorded makes a recording of a program of testdata/trace.
func recorded(t *testing.T, name string) (*record.Recording, *image.Process) {
	t.Helper()
	p, err := recordtest.Read(filepath.Join("..", "internal", "testdata", "trace", name+".c"))
	if err != nil {
		t.Fatal(err)
	}
	r := p.Record(t)
	rec, err := record.Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	core, err := image.OpenCore(filepath.Join(r.Dir, record.CoreName), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { core.Close() })
	return rec, core
}

func resolve(t *testing.T, p *image.Process, exprs ...string) []watchtrace.Target {
	t.Helper()
	var targets []watchtrace.Target
	for _, e := range exprs {
		list, err := watchtrace.Resolve(p, e)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, list...)
	}
	return targets
}

func TestNames(t *testing.T) {
	_, core := recorded(t, "names")
	for _, c := range []struct {
		expr, typ string
		size      int
		value     uint64
	}{
		{"guarded", "long int", 8, ^uint64(4)},
		{"cfg.workers[1].state", "enum state", 4, 2},
		{"cfg.workers[1].number", "long int", 8, 0},
		{"head->number", "long int", 8, 3},
		{"(*head).next->number", "long int", 8, 2},
		{"head->next->next->next->number", "long int", 8, 0},
		{" table[ 7 ]", "int", 4, 7},
		{"calloc@names.c:43#2+8:8", "", 8, 1},
		{"calloc@names.c:43#4+8:8", "", 8, 3},
	} {
		targets, err := watchtrace.Resolve(core, c.expr)
		if err != nil {
			t.Error(err)
			continue
		}
		x := targets[0]
		var b [8]byte
		if _, err := core.ReadMemory(x.Addr, b[:min(x.Size, 8)]); err != nil {
			t.Errorf("%s: %v", c.expr, err)
		}
		value := uint64(0)
		for i := range b {
			value |= uint64(b[i]) << (8 * i)
		}
		if len(targets) != 1 || x.Type != c.typ || x.Size != c.size || value != c.value {
			t.Errorf("%s: %+v with the value %#x, want %d bytes of type %q with %#x", c.expr, targets, value, c.size, c.typ, c.value)
		}
	}
	at := resolve(t, core, "table")[0].Addr
	if x := resolve(t, core, fmt.Sprintf("%v:16", at))[0]; x.Addr != at || x.Size != 16 {
		t.Errorf("%v:16 is %+v", at, x)
	}
}

func TestNamesThatAreNone(t *testing.T) {
	_, core := recorded(t, "names")
	for expr, want := range map[string]string{
		"gaurded":                              "there is no global gaurded; there is guarded",
		"main":                                 "main is a function",
		"cfg.worker[1]":                        "has no member worker; there is workers",
		"cfg.workers[3].state":                 "has the elements 0 to 2",
		"head->next->next->":                   "a member's name is missing",
		"cfg->name":                            "points to nothing that is known",
		"table[x]":                             "is no number",
		"(head":                                "is not closed",
		"guarded guarded":                      "is not understood",
		"":                                     "an expression is missing",
		"0x5555555580a0":                       "an address takes a length, as in 0x5555555580a0:8",
		"calloc@names.c:43":                    "4 objects that were allocated there are in memory at the end; calloc@names.c:43#1 is the first",
		"calloc@names.c:42":                    "was allocated at names.c:42; there is names.c:43",
		"0x0:0":                                "is no address and length",
		"calloc@names.c:43#9":                  "4 objects that were allocated at names.c:43",
		"calloc@names.c:42#1":                  "was allocated at names.c:42; there is names.c:43",
		"calloc@names.c:43#1+99":               "the object has 32 bytes",
		"head->next->next->next->next->number": "where no memory is",
	} {
		_, err := watchtrace.Resolve(core, expr)
		var name *watchtrace.NameError
		if !errors.As(err, &name) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", expr, err, want)
		}
	}
}

func trace(t *testing.T, rec *record.Recording, targets []watchtrace.Target, o watchtrace.Options) (*watchtrace.Plan, *evidence.AccessLog) {
	t.Helper()
	plan, log := traceLimited(t, rec, targets, o)
	if len(log.Limits) > 0 || log.Lost > 0 {
		t.Fatalf("%d accesses lost, limits: %+v", log.Lost, log.Limits)
	}
	return plan, log
}

// shown is an access without the fields that differ between passes.
func shown(log *evidence.AccessLog, a *evidence.Access) string {
	var locks []string
	for _, l := range log.LockSets[a.Locks] {
		locks = append(locks, fmt.Sprintf("%s@%d", l.Name, l.Taken))
	}
	c := &log.Contexts[a.Context]
	return fmt.Sprintf("%d thread %d %s %s %d -> %d in %s, locks %v, %q", a.Position, a.Thread, log.Variables[a.Variable].Name,
		a.Kind.Kind(), int64(a.Old), int64(a.New), c.Site.Function, locks, log.Threads[a.Thread].Start)
}

func TestTrace(t *testing.T) {
	rec, core := recorded(t, "names")
	targets := resolve(t, core, "guarded", "bare", "cfg.workers[1].state", "head->number", "cfg.name", "table")
	var progress []watchtrace.Progress
	plan, log := trace(t, rec, targets, watchtrace.Options{Progress: func(p watchtrace.Progress) { progress = append(progress, p) }})
	if n := len(plan.Passes); n < 13 || log.Passes != n || progress[len(progress)-1] != (watchtrace.Progress{Done: n, Passes: n, Hits: log.Hits}) {
		t.Errorf("%d passes planned, %d made, progress %v", n, log.Passes, progress[len(progress)-1])
	}
	if !log.Failed || log.Backend == "" || log.Nanoseconds == 0 {
		t.Errorf("coverage: %+v, failed %v", log.Coverage, log.Failed)
	}
	if !slices.IsSortedFunc(log.Accesses, func(a, b evidence.Access) int { return int(a.Position) - int(b.Position) }) {
		t.Error("the accesses are not in order")
	}
	var guarded, state []string
	for i := range log.Accesses {
		a := &log.Accesses[i]
		switch a.Variable {
		case 0:
			guarded = append(guarded, shown(log, a))
			if locks := log.LockSets[a.Locks]; len(locks) != 1 || locks[0].Name != "lock" || locks[0].Taken == 0 {
				t.Errorf("%s without its lock", shown(log, a))
			}
		case 1:
			if a.Locks != 0 {
				t.Errorf("%s with a lock", shown(log, a))
			}
		case 2:
			state = append(state, fmt.Sprintf("%s %d", a.Kind.Kind(), a.New))
		}
	}
	if len(guarded) != 10 && len(guarded) != 20 {
		t.Errorf("%d accesses to guarded:\n%s", len(guarded), strings.Join(guarded, "\n"))
	}
	if !strings.Contains(guarded[0], `in add`) || !strings.Contains(guarded[0], `"add"`) || !strings.Contains(guarded[len(guarded)-1], `"main"`) {
		t.Errorf("accesses to guarded:\n%s", strings.Join(guarded, "\n"))
	}
	if want := []string{"write 1", "write 2"}; !slices.Equal(state, want) {
		t.Errorf("accesses to the state: %q, want %q", state, want)
	}
	if v := &log.Variables[5]; v.Hits < 50 || v.Pass == 0 {
		t.Errorf("the table: %+v", v)
	}
	checkOrder(t, log)
}

// checkOrder checks that creation and join are edges.
func checkOrder(t *testing.T, log *evidence.AccessLog) {
	t.Helper()
	found := map[string]bool{}
	for _, e := range log.Order {
		if !e.Lock {
			found[fmt.Sprintf("%d before %d", e.From, e.To)] = true
		}
	}
	if !found["1 before 2"] || !found["2 before 1"] {
		t.Errorf("edges: %+v", log.Order)
	}
}

// TestPassesAgree: a log is the same for every back end, and for every
// distribution of its words over passes.
func TestPassesAgree(t *testing.T) {
	rec, core := recorded(t, "names")
	targets := resolve(t, core, "guarded", "bare")
	_, together := trace(t, rec, targets, watchtrace.Options{Backend: replay.BackendPages})
	for name, o := range map[string]watchtrace.Options{"pages": {Backend: replay.BackendPages}, "ptrace": {Backend: replay.BackendPtrace}, "bpf": {Backend: replay.BackendBPF}, "chosen": {}} {
		t.Run(name, func(t *testing.T) {
			for i := range targets {
				_, alone := trace(t, rec, targets[i:i+1], o)
				var want []string
				for j := range together.Accesses {
					if together.Accesses[j].Variable == int32(i) {
						want = append(want, shown(together, &together.Accesses[j]))
					}
				}
				var got []string
				for j := range alone.Accesses {
					got = append(got, shown(alone, &alone.Accesses[j]))
				}
				if len(got) < 10 || !slices.Equal(got, want) {
					t.Errorf("alone:\n%s\ntogether:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}

func TestDetails(t *testing.T) {
	rec, core := recorded(t, "names")
	plan, log := trace(t, rec, resolve(t, core, "cfg.workers[1].state", "guarded", "head->number", "cfg.name"), watchtrace.Options{})
	var indices []int
	for i := range log.Accesses {
		if v := log.Accesses[i].Variable; v == 0 || v == 3 || v == 1 && log.Accesses[i].Thread == 2 {
			indices = append(indices, i)
		}
	}
	slices.Reverse(indices)
	seen, err := plan.Details(t.Context(), log, indices)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range seen {
		a := &log.Accesses[indices[i]]
		if x.Position != a.Position || x.Kind != a.Kind.Kind() || len(x.Stack.Frames) == 0 || x.Site == nil || x.Moment.Thread != a.Thread {
			t.Errorf("%+v is not %+v", x, a)
		}
		switch a.Variable {
		case 0:
			if x.Variable != "cfg.workers[1].state" || x.New != "DONE (2)" && x.New != "BUSY (1)" || x.Site.Function != "main" {
				t.Errorf("the state: %s %s -> %s at %+v", x.Variable, x.Old, x.New, x.Site)
			}
		case 1:
			if x.Stack.Frames[0].Site.Function != "add" || x.Thread.Start != "add" || len(x.Locks) != 1 {
				t.Errorf("guarded: %+v", x)
			}
		case 3:
			// The copy may be libc's: the line that is responsible is main's.
			if x.Site.Function != "main" || x.Stack.Frames[0].Site.Function != "main" {
				t.Errorf("the name: %+v, stack %+v", x.Site, x.Stack.Frames)
			}
		}
	}
	if len(seen) < 4 {
		t.Errorf("%d accesses were looked at", len(seen))
	}
	checkMoments(t, rec, log, seen)
}

// checkMoments runs to the moments of accesses: there the word has its old
// value.
func checkMoments(t *testing.T, rec *record.Recording, log *evidence.AccessLog, seen []evidence.SeenAccess) {
	t.Helper()
	stood, most := 0, uint64(0)
	for _, x := range seen {
		if x.Moment.PC == 0 {
			continue
		}
		stood, most = stood+1, max(most, x.Moment.Count)
		hook := replay.Hook{At: x.Moment, Do: func(s *replay.Stopped) error {
			p, err := s.Process()
			if err != nil {
				return err
			}
			if v, err := image.Uint32(p, x.Address); err != nil || !strings.Contains(x.Old, fmt.Sprint(v)) {
				t.Errorf("at %v %s is %d, want %s (%v)", x.Moment, x.Variable, v, x.Old, err)
			}
			return replay.ErrEnough
		}}
		if _, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Hooks: []replay.Hook{hook}}}); err != nil {
			t.Error(err)
		}
	}
	if stood < 3 || most < 2 {
		t.Errorf("%d moments, of up to %d arrivals, in %+v", stood, most, log.Accesses)
	}
}

func TestBudgets(t *testing.T) {
	rec, core := recorded(t, "names")
	targets := resolve(t, core, "table", "guarded", "table[3]", "bare")
	plan, err := watchtrace.NewPlan(rec, targets, watchtrace.Options{Passes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if v := plan.Variables; len(plan.Passes) != 1 || v[0].Untraced != "" || !strings.Contains(v[1].Untraced, "1 passes") {
		t.Errorf("%d passes for %+v", len(plan.Passes), v)
	}
	plan, err = watchtrace.NewPlan(rec, targets, watchtrace.Options{Words: 50})
	if err != nil {
		t.Fatal(err)
	}
	if v := plan.Variables; v[1].Untraced != "" && !strings.Contains(v[1].Untraced, "50 words") || !strings.Contains(v[3].Untraced, "50 words") {
		t.Errorf("%+v", v)
	}
	_, log := traceLimited(t, rec, targets[:2], watchtrace.Options{Hits: 8})
	if v := log.Variables[0]; !strings.Contains(v.Untraced, "too often") && v.Hits == 0 {
		t.Errorf("%+v", v)
	}
}

func traceLimited(t *testing.T, rec *record.Recording, targets []watchtrace.Target, o watchtrace.Options) (*watchtrace.Plan, *evidence.AccessLog) {
	t.Helper()
	plan, err := watchtrace.NewPlan(rec, targets, o)
	if err != nil {
		t.Fatal(err)
	}
	log, err := plan.Trace(t.Context())
	var cannot *replay.UnsupportedError
	if errors.As(err, &cannot) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plan, log
}

func TestLockOrder(t *testing.T) {
	rec, _ := recorded(t, "deadlock")
	_, log := trace(t, rec, nil, watchtrace.Options{LockOrder: true})
	var got []string
	for _, a := range log.Acquisitions {
		var held []string
		for _, l := range log.LockSets[a.Held] {
			held = append(held, l.Name)
		}
		got = append(got, fmt.Sprintf("thread %d in %s: %s under %v, waiting %v", a.Thread, log.Contexts[a.Context].Site.Function, a.Lock.Name, held, a.Waiting))
	}
	want := []string{"thread 1 in main: second under [first], waiting false",
		"thread 2 in one: second under [first], waiting true", "thread 3 in other: first under [second], waiting true"}
	if !slices.Equal(got, want) {
		t.Errorf("acquisitions:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// Without passes the waits are found, too.
	if _, log := trace(t, rec, nil, watchtrace.Options{}); len(log.Acquisitions) != 2 || log.Passes != 0 {
		t.Errorf("%d passes, %+v", log.Passes, log.Acquisitions)
	}
}
