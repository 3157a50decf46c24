package failure_test

import (
	"path/filepath"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/failure"
	"diagnose/image"
	"diagnose/internal/crashtest"
	"diagnose/unwind"
)

func TestMain(m *testing.M) { crashtest.Main(m) }

// diagnosis is what this package says of one core.
type diagnosis struct {
	process  *image.Process
	failure  evidence.Failure
	limits   []evidence.Limit
	findings []evidence.Finding
	waiting  []string
}

func open(t *testing.T, core, exe string) *image.Process {
	t.Helper()
	p, err := image.OpenCore(core, image.Options{Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func diagnose(t *testing.T, core, exe string) diagnosis {
	t.Helper()
	p := open(t, core, exe)
	u := unwind.New(p)
	stacks := make([]unwind.Stack, len(p.Threads))
	for i := range p.Threads {
		stacks[i] = u.WalkEnds(&p.Threads[i], unwind.EndsOptions{Limit: 1 << 20, Top: 64, Bottom: 8})
		u.Symbolize(stacks[i].Frames)
	}
	d := diagnosis{process: p, findings: failure.Deadlocks(p, stacks), waiting: failure.Waiting(p, stacks)}
	in := failure.Input{Process: p, Findings: d.findings}
	if p.Failing >= 0 {
		in.Stack = stacks[p.Failing]
	}
	d.failure, d.limits = failure.Classify(in)
	return d
}

// variants are all of a fixture's with DIAGNOSE_MATRIX=full, or else one,
// another one from fixture to fixture: their unwinding is tested elsewhere.
func variants(f *crashtest.Fixture, index int) []crashtest.Variant {
	all := f.Variants()
	if crashtest.FullMatrix() {
		return all
	}
	return all[index%len(all):][:1]
}

// TestFixtures asks for kind, access and line of every crash program.
func TestFixtures(t *testing.T) {
	for i, f := range crashtest.Fixtures(t) {
		for _, v := range variants(f, i) {
			t.Run(f.Name+"/"+v.Name, func(t *testing.T) {
				t.Parallel()
				crash := f.Crash(t, v)
				d := diagnose(t, crash.Core, crash.Exe)
				check(t, f, d)
			})
		}
	}
}

func atLine(site *evidence.Site, f *crashtest.Fixture) bool {
	if site == nil {
		return false
	}
	if _, ok := moved[f.Name]; ok && site.Function != "" {
		return site.File == "" || filepath.Base(site.File) == filepath.Base(f.Source)
	}
	return filepath.Base(site.File) == filepath.Base(f.Source) && site.Line == f.Want.Line
}

func check(t *testing.T, f *crashtest.Fixture, d diagnosis) {
	t.Helper()
	got := d.failure
	t.Logf("%s | %s | %v", got.Sentence, got.Message, d.limits)
	if got.Kind != f.Want.Kind {
		t.Errorf("kind %s, want %s", got.Kind, f.Want.Kind)
	}
	if f.Want.Access != "" && (got.Fault == nil || got.Fault.Access != f.Want.Access && got.Fault.Access != evidence.ReadWrite) {
		t.Errorf("fault %+v, want a %s", got.Fault, f.Want.Access)
	}
	if !atLine(got.Site, f) {
		t.Errorf("site %+v, want line %d", got.Site, f.Want.Line)
	}
	if f.Hang != (len(d.findings) > 0) {
		t.Errorf("findings %+v", d.findings)
	}
	for _, finding := range d.findings {
		if finding.Proof != evidence.FromCore {
			t.Errorf("%s is only %s", finding.Summary, finding.Proof)
		}
	}
	c := evidence.Case{Failure: got, Findings: d.findings}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if strings.Contains(got.Sentence, "%!") {
		t.Errorf("sentence %q", got.Sentence)
	}
}

// moved are the fixtures whose line depends on what the compiler makes of
// them, and where the debug information says so too: gdb names the same line.
var moved = map[string]string{
	"tail_calls":            "the load moves into the caller (IPA-SRA)",
	"near_null_read":        "the load moves into the caller (IPA-SRA)",
	"deep_inlining":         "the load moves into the caller (IPA-SRA)",
	"cxx_template_deep":     "the load moves into the caller (IPA-SRA)",
	"bsearch_callback":      "the comparison is inlined into bsearch, a header's function",
	"stack_smashing":        "the check has the line of the function",
	"stack_overflow":        "any instruction of the function may be the last",
	"stack_overflow_thread": "any instruction of the function may be the last",
	"stack_overflow_mutual": "any function of the cycle may be the last",
	"rust_enum_overflow":    "any instruction of the function may be the last",
	"illegal_instruction":   "the assembler text has the line of the condition",
	"fortify_strcpy":        "strcpy is inlined from a header",
	"cxx_throw_runtime":     "the cold part of the function has no lines",
	"cxx_throw_int":         "clang's landing pad terminates after the unwinding",
	"execute_data":          "a tail call leaves no frame",
}
