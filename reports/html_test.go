package reports

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"diagnose/evidence"
)

// htmlCases are reports that use every part of the page.
func htmlCases() map[string]*evidence.Case {
	deep := sample()
	deep.Stacks[0].Stack = deepStack(200)
	freed := diagnosed(freedCause())
	return map[string]*evidence.Case{"sample": sample(), "race": withSources(diagnosed(raceCause(), overflowCause())), "unknown": diagnosed(),
		"deep": deep, "freed": withSources(freed), "hostile": hostileCase(hostileText), "bare": bareCase(),
		"schedule": scheduledCase(), "interrupted": interruptedCase()}
}

// scheduledCase is a case that fails when a thread is made to wait.
func scheduledCase() *evidence.Case {
	c := withSources(diagnosed(raceCause()))
	race := raceCause().Interleaving.Failing
	c.Diagnosis.Schedule = &evidence.Schedule{By: "search", Attempts: 19, Runs: 3, Preemptions: []evidence.Preemption{
		{Thread: race[0].Thread, Event: 14, Site: race[0].Site, Until: 46, Last: "mutex", LastThread: race[1].Thread, LastSite: race[1].Site, Runs: 3},
		{Thread: race[1].Thread, Event: 9, Until: 50, Runs: 3}}}
	return c
}

// interruptedCase is a case without an end and without a cause.
func interruptedCase() *evidence.Case {
	c := diagnosed()
	c.Diagnosis.Interrupted = true
	c.Diagnosis.Unknown = &evidence.Unknown{Why: "it was interrupted", Because: []evidence.Limit{{Text: "there was no time"}}, Next: "diagnose replay rec/failed-1", NextWhy: "to see it again"}
	return c
}

func bareCase() *evidence.Case {
	return &evidence.Case{Failure: evidence.Failure{Kind: evidence.UnknownFailure, Sentence: "nothing is known", Proof: evidence.Inferred}, Stacks: []evidence.ThreadGroup{}}
}

func deepStack(n int) evidence.Stack {
	var s evidence.Stack
	for i := range n {
		s.Frames = append(s.Frames, evidence.Frame{Index: i, Kind: evidence.Physical, Trust: evidence.TrustCFI, Site: site("walk", "tree.c", i+1, 0)})
	}
	return s
}

// freedCause is a store into an object that was freed.
func freedCause() evidence.Cause {
	c := overflowCause()
	c.Kind = evidence.CauseUseAfterFree
	drop, make := site("drop", "/src/names.c", 30, 2), site("make_name", "/src/names.c", 12, 2)
	c.Object = &evidence.HeapObject{Addr: 0x404040, Size: 4096, Slot: 0x404040, SlotEnd: 0x405060, State: evidence.HeapQuarantined, API: "malloc",
		Allocated: heapCall(nil, make), Freed: heapCall(nil, drop)}
	c.Story[0].Access.Address += 16
	return c
}

const hostileText = "a\x1b]0;owned\x07</title></style></script><script>document.title='owned'</script><img src=x onerror=alert(1)>" +
	"\"'`${alert(1)}{{.}}&lt;!-- -->\n```\n# b\u202ec\u009b31m\x7f\U000e0041|d\xff"

// hostileCase has the given text in every place that the target controls.
func hostileCase(text string) *evidence.Case {
	c := withSources(diagnosed(raceCause(), overflowCause()))
	s := evidence.Site{PC: 0x401136, Module: text, ModuleOffset: 0x1136, Function: text, LinkageName: text, File: "/" + text, Line: 3}
	c.Failure.Sentence, c.Failure.Message, c.Failure.Site = text, text, &s
	c.Failure.Source.File, c.Failure.Source.Lines[1].Text = text, text
	c.Stacks[0].Stack.Frames[0].Site = s
	c.Stacks[0].Stack.Frames[0].Locals[0] = evidence.Variable{Name: text, Type: text, Value: evidence.Value{Text: text}}
	c.Scan.Suspects[0].Name, c.Scan.Suspects[0].Type, c.Scan.Functions[0] = text, text, text
	c.Limits[0].Text, c.Limits[0].Subject, c.Modules[0].Path, c.Program.Exe, c.Program.Args = text, text, text, text, text
	c.Stacks[0].Stack.Frames[1].Site.Module, c.Failure.Thread.Name, c.Findings[0].Facts[0].Name = text, text, text
	c.Findings[1].Object.Allocated.Site, c.Findings[1].Object.Allocated.Stack.Frames[0].Site = &s, s
	c.Findings[1].Object.API, c.Findings[1].Damage.Text = text, strings.Repeat("<", 12)
	for i := range c.Diagnosis.Causes {
		x := &c.Diagnosis.Causes[i]
		x.Summary, x.Variable, x.Site, x.Experiments = text, text, &s, append(x.Experiments, evidence.Experiment{What: text, Runs: 1, Outcome: text})
		for j := range x.Story {
			x.Story[j].Text = text
		}
		if x.Interleaving != nil {
			for j := range x.Interleaving.Failing {
				a := &x.Interleaving.Failing[j]
				a.Thread.Name, a.Variable, a.Old, a.New, a.Site, a.Handler, a.Call = text, text, text, text, &s, text, text
				a.Locks = []evidence.Lock{{Name: text}}
			}
		}
	}
	c.Sources = append(c.Sources, evidence.Source{File: s.File, Lines: []evidence.SourceLine{{Number: 3, Text: text}}})
	c.Diagnosis.Recording, c.Diagnosis.Watched[0].Name, c.Diagnosis.Excluded[0].Name = text, text, text
	return c
}

// Nothing that the target controls is markup, a control character or a link, in any format, and a
// line remains one line.
func TestHostileTextInEveryFormat(t *testing.T) {
	c := hostileCase(hostileText)
	for _, name := range Formats() {
		text := render(t, c, Options{Format: Format(name), Version: "1.2"})
		if !utf8.ValidString(text) {
			t.Errorf("%s is no UTF-8", name)
		}
		if i := strings.IndexAny(text, "\x1b\x07\x7f\u009b\u202e\U000e0041"); i >= 0 {
			t.Errorf("%s holds %q", name, text[i:min(len(text), i+20)])
		}
		if strings.Contains(text, "\n# b") {
			t.Errorf("%s: hostile text broke out of its line", name)
		}
		if name != string(HTML) {
			continue
		}
		if n := strings.Count(text, "<script"); n != 1 {
			t.Errorf("%d scripts", n)
		}
		for _, markup := range []string{"<img", "owned'</script>", "</title></style>", "onerror=alert(1)>"} {
			if strings.Contains(text, markup) {
				t.Errorf("the page holds %s", markup)
			}
		}
	}
}

// With symbols of a megabyte every format can be written. Pages and SARIF stay small enough to
// open, and JSON has the whole names.
func TestVeryLongNames(t *testing.T) {
	const size = 1 << 20
	c := sample()
	long := "std::vector<" + strings.Repeat("x", size) + ">"
	for i := range c.Stacks[0].Stack.Frames {
		c.Stacks[0].Stack.Frames[i].Site.Function = long
	}
	c.Failure.Site.Function, c.Program.Args = long, long
	for _, format := range []Format{HTML, SARIF} {
		if text := render(t, c, Options{Format: format}); len(text) > size {
			t.Errorf("%s has %d bytes", format, len(text))
		} else if !strings.Contains(text, "std::vector") || !strings.Contains(text, "more bytes in the JSON form") {
			t.Errorf("%s does not say that it cut a name", format)
		}
	}
	for _, format := range []Format{Text, Markdown} {
		if text := render(t, c, Options{Format: format, Width: 80}); !utf8.ValidString(text) || !strings.Contains(text, "std::vector") {
			t.Errorf("%s with long names is not what it was", format)
		}
	}
	if text := render(t, c, Options{Format: JSON}); len(text) < size {
		t.Error("JSON cut the name")
	}
}

var (
	idAttribute   = regexp.MustCompile(`\sid="([^"]*)"`)
	hrefAttribute = regexp.MustCompile(`\shref="([^"]*)"`)
	urlAttribute  = regexp.MustCompile(`\s(?:src|srcset|action|data|poster|xlink:href|style|on[a-z]+)=|@import|url\(`)
)

// Every link of a page leads to a part that exists once in the page, and the page loads nothing
// from elsewhere.
func TestPagesStandAlone(t *testing.T) {
	for name, c := range htmlCases() {
		text := render(t, c, Options{Format: HTML, Version: "1.2"})
		ids := map[string]int{}
		for _, m := range idAttribute.FindAllStringSubmatch(text, -1) {
			ids[m[1]]++
		}
		for id, n := range ids {
			if n > 1 {
				t.Errorf("%s: %d parts are called %s", name, n, id)
			}
		}
		links := hrefAttribute.FindAllStringSubmatch(text, -1)
		if len(links) == 0 {
			t.Errorf("%s has no links", name)
		}
		for _, m := range links {
			if to, local := strings.CutPrefix(m[1], "#"); !local || ids[to] != 1 {
				t.Errorf("%s: a link to %s", name, m[1])
			}
		}
		if name == "hostile" { // its text has such words, escaped
			continue
		}
		if m := urlAttribute.FindString(text); m != "" {
			t.Errorf("%s holds %s", name, m)
		}
	}
}

// The policy allows the page's own style and script by their digests, and
// nothing else.
func TestPagePolicy(t *testing.T) {
	text := render(t, sample(), Options{Format: HTML})
	_, style, _ := strings.Cut(text, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	_, script, _ := strings.Cut(text, "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	_, policy, found := strings.Cut(text, `<meta http-equiv="Content-Security-Policy" content="`)
	if !found {
		t.Fatal("there is no policy")
	}
	policy, _, _ = strings.Cut(policy, `"`)
	policy = strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy)
	for _, want := range []string{"default-src 'none'", "script-src '" + sourceHash(script) + "'", "style-src '" + sourceHash(style) + "'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy+";", want+";") {
			t.Errorf("%s is missing in %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || len(style) < 1000 || len(script) < 500 {
		t.Errorf("policy %s with %d bytes of style and %d of script", policy, len(style), len(script))
	}
}

// The page contains all that the text contains.
func TestPageSaysWhatTheTextSays(t *testing.T) {
	for name, c := range map[string]*evidence.Case{"sample": sample(), "race": withSources(diagnosed(raceCause(), overflowCause())), "unknown": diagnosed(), "interrupted": interruptedCase(), "schedule": scheduledCase()} {
		page := plainText(render(t, c, Options{Format: HTML, Version: "1.2"}))
		text := render(t, c, Options{Format: Text, Version: "1.2"})
		for _, l := range strings.Split(text, "\n") {
			if dumped.MatchString(l) { // a table in the page, with cells in place of brackets
				continue
			}
			for _, word := range strings.Fields(l) {
				word = strings.Trim(word, "[]|,;:()#")
				if !strings.Contains(page, word) {
					t.Errorf("%s: the page lacks %q of %q", name, word, l)
				}
			}
		}
	}
}

// dumped is a line of bytes.
var dumped = regexp.MustCompile(`^ +0x[0-9a-f]{16}[ 0-9a-fx|\[\]]{48}`)

var tags = regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>|<[^>]*>`)

// plainText is the text of a page, and that of its labels.
func plainText(page string) string {
	labels := regexp.MustCompile(`aria-label="([^"]*)"`).FindAllStringSubmatch(page, -1)
	text := tags.ReplaceAllString(page, "")
	for _, m := range labels {
		text += "\n" + m[1]
	}
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&#43;", "+", "&amp;", "&").Replace(text)
}

// The code where threads are made to wait is marked with the preemptions'
// numbers.
func TestPageOfASchedule(t *testing.T) {
	_, code, found := strings.Cut(render(t, scheduledCase(), Options{Format: HTML}), `id="source"`)
	code, _, _ = strings.Cut(code, "</section>")
	if want := `<td class="mark">1,wait 1</td><td class="number">31</td>`; !found || !strings.Contains(code, want) || strings.Count(code, "wait 1") != 1 {
		t.Errorf("%s is not the one mark of %s", want, code)
	}
}

// Locks are drawn where they were held. Between two accesses the picture claims only that no other
// thread had the lock.
func TestTimeline(t *testing.T) {
	i := raceCause().Interleaving
	for n := range i.Failing {
		for l := range i.Failing[n].Locks {
			i.Failing[n].Locks[l].Taken = 7
		}
	}
	i.Failing = append(i.Failing, i.Failing[0])
	x := timeline("t", "Failing run", "", true, ofInterleaving(i, i.Failing))
	if len(x.Lanes) != 2 || len(x.Marks) != 4 || len(x.Steps) != 3 {
		t.Fatalf("%d lanes, %d marks, %d steps", len(x.Lanes), len(x.Marks), len(x.Steps))
	}
	if len(x.Holds) != 3 || len(x.Kept) != 1 || x.Kept[0].Y != x.Marks[0].Y || x.Kept[0].Bottom != x.Marks[3].Y {
		t.Errorf("holds %+v, kept %+v", x.Holds, x.Kept)
	}
	for n, m := range x.Marks {
		if m.Between != (n == 1) || m.Number != n+1 || (m.Kind == happensWrite) != (n == 1 || n == 2) {
			t.Errorf("mark %d: %+v", n, m)
		}
		if n > 0 && m.Y <= x.Marks[n-1].Y {
			t.Errorf("mark %d is not below the one before it", n)
		}
	}
	i.Failing = i.Failing[:3]
	i.Failing[1].Thread, i.Failing[1].Handler = i.Failing[0].Thread, "SIGALRM"
	if x := timeline("t", "Failing run", "", true, ofInterleaving(i, i.Failing)); len(x.Lanes) != 2 || x.Lanes[1].Title != "SIGALRM in thread 2" || !x.Marks[1].Between {
		t.Errorf("with a signal's handler: %+v", x)
	}
	var many []evidence.SeenAccess
	for n := range 500 {
		a := i.Failing[n%3]
		a.Thread.Number = n % 40
		many = append(many, a)
	}
	if x := timeline("t", "", "", true, ofInterleaving(i, many)); len(x.Marks) != maxTimeline || x.More != 500-maxTimeline {
		t.Errorf("%d marks and %d more", len(x.Marks), x.More)
	}
}

// The bar has every stretch of memory in order and without a gap, and marks only the overwritten
// bytes.
func TestMemoryBar(t *testing.T) {
	for name, x := range map[string]struct {
		finding evidence.Finding
		want    string
	}{
		"overflow":  {overflowFinding(), "0x2080000010b0 object; 0x2080000010c4 guard!; 0x2080000010d0 beyond"},
		"no damage": {doubleFreeFinding(), "0x208000002000 freed; 0x208000002028 guard"},
		"underflow": {evidence.Finding{Object: &evidence.HeapObject{Addr: 0x1010, Size: 16, Slot: 0x1010, SlotEnd: 0x1020, State: evidence.HeapLive},
			Damage: &evidence.Damage{Start: 0x1008, End: 0x100c, Offset: -8, Overwritten: 4}}, "0x1008 between!; 0x100c between; 0x1010 object"},
		"inside freed": {evidence.Finding{Object: &evidence.HeapObject{Addr: 0x1000, Size: 64, Slot: 0x1000, SlotEnd: 0x1040, State: evidence.HeapFreed},
			Damage: &evidence.Damage{Start: 0x1010, End: 0x1018, Offset: 16, Overwritten: 8}}, "0x1000 freed; 0x1010 freed!; 0x1018 freed"},
		"wraps": {evidence.Finding{Object: &evidence.HeapObject{Addr: 1 << 63, Size: 1 << 63}}, ""},
		"huge":  {evidence.Finding{Object: &evidence.HeapObject{Addr: 1, Size: 1<<64 - 2, Slot: 1}}, "0x1 object"},
	} {
		var got []string
		if m := findingMemory(&x.finding); m != nil {
			end := 0
			for _, s := range m.Segments {
				mark := ""
				if s.Damaged {
					mark = "!"
				}
				got = append(got, fmt.Sprintf("%s %s%s", s.Start, s.Class, mark))
				if s.X != end || s.Width < segmentWide {
					t.Errorf("%s: a segment from %d with %d, the last one ended at %d", name, s.X, s.Width, end)
				}
				end = s.X + s.Width
			}
			if end > barWidth {
				t.Errorf("%s: the bar ends at %d of %d", name, end, barWidth)
			}
		}
		if text := strings.Join(got, "; "); text != x.want {
			t.Errorf("%s: %s, want %s", name, text, x.want)
		}
	}
}

func TestCutSpan(t *testing.T) {
	long := strings.Repeat("\u00e9", maxSpan)
	got := cutSpan(long)
	if !utf8.ValidString(got) || len(got) > maxSpan+60 || !strings.Contains(got, fmt.Sprintf("(%d more bytes", maxSpan)) {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-40:])
	}
	if cutSpan("short") != "short" {
		t.Error("a short name was cut")
	}
}

// The same holds for the summary of a heap, in which every text is hostile.
func TestHostileHeapInEveryFormat(t *testing.T) {
	all := func(string) string { return hostileText }
	for _, sample := range []*evidence.Heap{sampleHeap(), sampleMalloc()} {
		h := copied(sample, edits{text: all, source: all, damage: same[evidence.Damage]})
		hostileIn(t, func(format Format) string { return renderHeap(t, h, Options{Format: format, Version: "1.2"}) })
	}
}

func hostileIn(t *testing.T, render func(Format) string) {
	t.Helper()
	for _, name := range Formats() {
		text := render(Format(name))
		if i := strings.IndexAny(text, "\x1b\x07\x7f\u009b\u202e\U000e0041"); i >= 0 || !utf8.ValidString(text) {
			t.Errorf("%s holds %q", name, text[max(0, i):min(len(text), i+20)])
		}
		if strings.Contains(text, "\n# b") || !strings.Contains(text, "owned") {
			t.Errorf("%s: hostile text broke out of its line, or is not shown", name)
		}
		if name == string(HTML) && (strings.Count(text, "<script") != 1 || strings.Contains(text, "<img") || strings.Contains(text, "onerror=alert(1)>")) {
			t.Error("the page holds markup of the program")
		}
	}
}

// The frames of a container are folded, and the program's own around them are not.
func TestLibraryFramesAreFolded(t *testing.T) {
	const vector, own = "/usr/include/c++/12/bits/stl_vector.h", "/src/events.cc"
	frame := func(function, file string) evidence.Frame {
		return evidence.Frame{Kind: evidence.Physical, Trust: evidence.TrustCFI, Site: site(function, file, 7, 0)}
	}
	s := evidence.Stack{Frames: []evidence.Frame{frame("std::vector<int>::operator[]", vector), frame("read_event", own),
		frame("std::_Function_handler<int ()>::_M_invoke", "/usr/include/c++/12/bits/std_function.h"), frame("std::function<int ()>::operator()", vector),
		frame("core::ops::function::FnOnce::call_once", "/rustc/9fc6b431/library/core/src/ops/function.rs"), frame("main", own)}}
	x := htmlStackOf(nil, s, true)
	var got []int
	for _, f := range x.Frames {
		got = append(got, len(f.Folded))
	}
	if want := []int{0, 0, 2, 0, 0}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("folded %v, want %v", got, want)
	}
	c := sample()
	c.Stacks[0].Stack = s
	page := plainText(render(t, c, Options{Format: HTML}))
	for _, want := range []string{"2 frames of the C++ library", "_M_invoke", "read_event"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
