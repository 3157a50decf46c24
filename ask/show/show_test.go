package show

import (
	"bytes"
	"strings"
	"testing"

	"diagnose/ask"
	"diagnose/evidence"
	"diagnose/internal/browsertest"
)

func render(t *testing.T, a *ask.Answer) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, a, "1.2"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestText: the tables have the rows, and nothing in them reaches the terminal as control characters.
func TestText(t *testing.T) {
	for name, want := range map[string][]string{
		"writes":     {"head->balance: 40 writes in the whole recording", "the object was allocated after event 1:11:0x401156:2, position 11", "3 writes to this memory before"},
		"last-write": {"booked was last written by thread 2 at book ledger.c:27 by read", "#1 book"},
		"values":     {"the start", "booked: 2 values"},
		"calls":      {"Returned", "2:9:0x401156:2", "1 call had no return that was seen"},
		"did":        {"ENOENT", "mutex lock lock, waited (after 3 locks taken again)"},
		"holders":    {"lock was held 2 times", "not", "thread 1 waited for it after its event 5"},
		"executed":   {"ledger.c:27 was executed 1 time", "inferred"},
		"nothing":    {"nothing wrote untouched in the whole recording"},
	} {
		var b bytes.Buffer
		if err := Text(&b, samples()[name]); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%s: %q is missing in\n%s", name, text, &b)
			}
		}
		if strings.ContainsAny(b.String(), "\x1b\u202e") {
			t.Errorf("%s: control characters in\n%q", name, &b)
		}
	}
}

// TestIncomplete: that nothing happened is said only of a complete answer.
func TestIncomplete(t *testing.T) {
	a := samples()["nothing"]
	a.Coverage.Complete, a.Coverage.Gaps = false, []ask.Gap{{Kind: ask.GapKernel}}
	if got := Headline(a); !strings.HasPrefix(got, "no instruction and no recorded call wrote untouched, and its value did not change") {
		t.Error(got)
	}
	a.Coverage.Gaps = append(a.Coverage.Gaps, ask.Gap{Kind: ask.GapPart, Count: 8, Of: 16})
	if got := Headline(a); got != "no write of untouched was seen in the whole recording" {
		t.Error(got)
	}
}

// TestTimelineIsBounded: an answer with very many rows draws some of them, and says so.
func TestTimelineIsBounded(t *testing.T) {
	a := samples()["writes"]
	for n := range uint64(3 * mostMarks) {
		a.Writes = append(a.Writes, ask.Write{Instant: at(uint32(n%200)+1, n, 100+n), Thread: uint32(n%200) + 1, Size: 8})
	}
	line := timelineOf(a, tableOf(a))
	if len(line.Marks)+len(line.Bars)+line.More != len(a.Writes) || len(line.Marks) > mostMarks || len(line.Rows) > mostLanes {
		t.Errorf("%d marks, %d more, %d rows of %d writes", len(line.Marks), line.More, len(line.Rows), len(a.Writes))
	}
	for _, m := range line.Marks {
		if m.X < timelineLeft || m.X > timelineLeft+timelineWidth {
			t.Fatalf("%+v is outside", m)
		}
	}
}

// TestPages: the pages load without an error and without anything from elsewhere, can be read in both colours, fit a telephone,
// and work without a script.
func TestPages(t *testing.T) {
	b := browsertest.New(t)
	for name, a := range samples() {
		page := render(t, a)
		for _, width := range []int{1200, 360} {
			b.Size(width, 800)
			for _, colors := range []string{"light", "dark"} {
				b.Media("screen", colors)
				b.Open(page)
				for _, c := range b.Complaints() {
					t.Errorf("%s: %s", name, c)
				}
				for _, p := range b.Pale() {
					t.Errorf("%s: too little contrast in %s: %s", name, colors, p)
				}
				var seen struct {
					Title              string
					Images, Wide, Rows int
				}
				b.Eval(`({Title: document.title, Images: document.querySelectorAll("img, iframe, object, link").length,
					Wide: Math.max(0, document.documentElement.scrollWidth - innerWidth), Rows: document.querySelectorAll("table.answer tbody tr").length})`, &seen)
				if seen.Title == "owned" || !strings.HasPrefix(seen.Title, "diagnose ask: ") || seen.Images != 0 || seen.Wide > 0 || seen.Rows != a.Rows() {
					t.Errorf("%s, %d wide: %+v", name, width, seen)
				}
			}
		}
		b.Screenshot("ask-" + name)
	}
}

// TestWarnings: a severe limit is the first line, and is there once.
func TestWarnings(t *testing.T) {
	a := samples()["writes"]
	a.Coverage.Limits = []evidence.Limit{evidence.Limit{Code: evidence.LimitOtherState, Severe: true, Subject: a.Recording, Count: 3}.Worded()}
	var b bytes.Buffer
	if err := Text(&b, a); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), "limit: same place, other state") || strings.Count(b.String(), "other state") != 1 {
		t.Errorf("the text is\n%s", &b)
	}
	page := render(t, a)
	if warning, first := strings.Index(page, "other state"), strings.Index(page, `id="timeline"`); warning < 0 || first < 0 || warning > first {
		t.Errorf("the page has the warning at %d, and the timeline at %d", warning, first)
	}
}
