package reports

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/browsertest"
)

// shownPages returns the pages that the browser tests load, and those that 'diagnose crash' wrote
// into the directory of screenshots.
func shownPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for name, c := range htmlCases() {
		pages[name] = render(t, c, Options{Format: HTML, Version: "1.2"})
	}
	pages["heap"] = renderHeap(t, sampleHeap(), Options{Format: HTML})
	if dir := os.Getenv(browsertest.ScreenshotVariable); dir != "" {
		files, err := filepath.Glob(filepath.Join(dir, "*.html"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pages[strings.TrimSuffix(filepath.Base(file), ".html")] = string(text)
		}
	}
	return pages
}

// TestPages tests all pages in one browser, which takes seconds to start.
func TestPages(t *testing.T) {
	b := browsertest.New(t)
	for _, x := range []struct {
		name string
		test func(*testing.T, *browsertest.Browser)
	}{{"load", pagesLoad}, {"keyboard", timelineByKeyboard}, {"pointer", timelineByPointer}, {"paper", pagesOnPaper},
		{"printing", printingUnfolds}, {"no script", pageWithoutScript}} {
		t.Run(x.name, func(t *testing.T) {
			b.T = t
			x.test(t, b)
		})
	}
}

// Every page loads without an error and without anything from elsewhere. Its script runs, no window
// is too narrow for it, and its text can be read in the light and the dark colours.
func pagesLoad(t *testing.T, b *browsertest.Browser) {
	for name, page := range shownPages(t) {
		b.Size(1200, 900)
		b.Media("screen", "light")
		b.Open(page)
		for _, c := range b.Complaints() {
			t.Errorf("%s: %s", name, c)
		}
		var seen struct {
			Ran            bool
			Title          string
			Scripts, Parts int
			Images         int
		}
		b.Eval(`({Ran: !document.querySelector(".controls").hidden, Title: document.title, Scripts: document.scripts.length,
			Parts: document.querySelectorAll("main .part").length, Images: document.querySelectorAll("img, iframe, object, link").length})`, &seen)
		if !seen.Ran || seen.Scripts != 1 || seen.Images != 0 || seen.Title == "owned" || seen.Parts == 0 {
			t.Errorf("%s: %+v", name, seen)
		}
		for _, colors := range []string{"light", "dark"} {
			b.Media("screen", colors)
			b.Eval(`document.querySelectorAll("details").forEach(d => { d.open = false; })`, nil)
			b.Eval(`document.querySelectorAll("main details[open], main .stack").forEach((d, i) => { if (i < 2) d.open = true; })`, nil)
			b.Screenshot(name + "-" + colors)
			b.Eval(`document.querySelectorAll("details").forEach(d => { d.open = true; })`, nil)
			for _, p := range b.Pale() {
				t.Errorf("%s: too little contrast in %s: %s", name, colors, p)
			}
		}
		for _, width := range []int{1200, 800, 360} {
			b.Size(width, 800)
			for _, p := range b.Wide() {
				t.Errorf("%s: wider than %d pixels: %s", name, width, p)
			}
		}
		b.Screenshot(name + "-narrow")
	}
}

// peekState is what the page shows of the access under the pointer or focus.
type peekState struct {
	Mark, Text                          string
	Hidden                              bool
	Left, Top, Right, Bottom, Width, On float64
}

const peekScript = `(() => { const p = document.getElementById("peek"), r = p.getBoundingClientRect(), m = document.activeElement;
	return {Mark: m.id, Text: p.textContent, Hidden: p.hidden, Left: r.left, Right: r.right, Width: innerWidth}; })()`

// The timelines can be walked by keyboard: focus shows an access with its value
// and its stack, and Enter leads to its description.
func timelineByKeyboard(t *testing.T, b *browsertest.Browser) {
	b.Size(1200, 900)
	b.Open(render(t, withSources(diagnosed(raceCause())), Options{Format: HTML}))
	var p peekState
	state := func() peekState {
		t.Helper()
		p = peekState{}
		b.Eval(peekScript, &p)
		return p
	}
	for range 100 {
		b.Press("Tab")
		if strings.Contains(state().Mark, "-mark-") {
			break
		}
	}
	if p.Mark != "cause-1-failing-mark-1" || p.Hidden {
		t.Fatalf("Tab does not reach the first mark, or nothing is shown there: %+v", p)
	}
	for _, want := range []string{"reads balance: 100", "holds guard", "withdraw", "bank.c:31", "line 31 of the bank", "#0"} {
		if !strings.Contains(p.Text, want) {
			t.Errorf("%q is missing in %q", want, p.Text)
		}
	}
	if p.Left < 0 || p.Right > p.Width {
		t.Errorf("it is shown outside of the window: %+v", p)
	}
	b.Press("ArrowDown")
	if state(); p.Mark != "cause-1-failing-mark-2" || p.Hidden || !strings.Contains(p.Text, "100 -> 20") {
		t.Errorf("the next mark: %+v", p)
	}
	b.Press("ArrowUp")
	if state(); p.Mark != "cause-1-failing-mark-1" {
		t.Errorf("back: %+v", p)
	}
	b.Press("Escape")
	if state(); !p.Hidden {
		t.Error("Escape does not hide it")
	}
	b.Press("Enter")
	var open bool
	b.Eval(`new Promise(done => setTimeout(() => done(document.getElementById("cause-1-failing-1").open && location.hash === "#cause-1-failing-1"), 0))`, &open)
	if !open {
		t.Error("Enter does not lead to the access")
	}
}

// The page shows what the pointer is over, and hides it when the pointer leaves.
func timelineByPointer(t *testing.T, b *browsertest.Browser) {
	b.Open(render(t, withSources(diagnosed(raceCause())), Options{Format: HTML}))
	for _, width := range []int{1200, 400} {
		b.Size(width, 900)
		var at struct{ X, Y float64 }
		b.Eval(`(() => { const m = document.getElementById("cause-1-failing-mark-2"); m.scrollIntoView({block: "center", inline: "center"});
			const r = m.querySelector("circle").getBoundingClientRect(); return {X: (r.left + r.right) / 2, Y: (r.top + r.bottom) / 2}; })()`, &at)
		b.PointAt(at.X, at.Y)
		var p peekState
		b.Eval(peekScript, &p)
		if p.Hidden || !strings.Contains(p.Text, "100 -> 20") || p.Left < 0 || p.Right > p.Width {
			t.Errorf("at %d pixels: %+v", width, p)
		}
		b.Screenshot(map[int]string{1200: "hover-wide", 400: "hover-narrow"}[width])
		b.PointAt(1, 1)
		if b.Eval(peekScript, &p); !p.Hidden {
			t.Error("it stays when the pointer goes")
		}
	}
}

// On paper everything is unfolded, and nothing is cut off at the right.
func pagesOnPaper(t *testing.T, b *browsertest.Browser) {
	for name, page := range shownPages(t) {
		b.Size(1000, 900)
		b.Media("screen", "dark")
		b.Open(page)
		const folded = `[...document.querySelectorAll("main details > :not(summary)")].filter(e => e.textContent.trim() && !e.checkVisibility()).map(e => e.textContent.slice(0, 60))`
		var onScreen []string
		if b.Eval(folded, &onScreen); len(onScreen) == 0 && name != "bare" {
			t.Errorf("%s: nothing is folded on the screen", name)
		}
		b.Media("print", "dark")
		var seen struct {
			Folded, Wide []string
			Paper        string
			Navigation   bool
		}
		b.Eval(`({Folded: `+folded+`.slice(0, 3),
			Wide: [...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + "." + (e.getAttribute("class") || "") + ": " + e.textContent.slice(0, 60)).slice(0, 3),
			Paper: getComputedStyle(document.body).backgroundColor, Navigation: document.querySelector("nav").checkVisibility()})`, &seen)
		if len(seen.Folded) > 0 || len(seen.Wide) > 0 || seen.Navigation || seen.Paper != "rgb(255, 255, 255)" {
			t.Errorf("%s: %+v", name, seen)
		}
		b.Screenshot(name + "-print")
	}
}

// Printing unfolds the page in browsers that unfold nothing by style, and leaves
// it as it was.
func printingUnfolds(t *testing.T, b *browsertest.Browser) {
	b.Open(render(t, withSources(diagnosed(raceCause())), Options{Format: HTML}))
	b.Eval(`addEventListener("beforeprint", () => { window.folded = document.querySelectorAll("main details:not([open])").length; })`, nil)
	var before, during, after int
	b.Eval(`document.querySelectorAll("main details:not([open])").length`, &before)
	var pdf struct {
		Data string `json:"data"`
	}
	b.Call("Page.printToPDF", map[string]any{"printBackground": true}, &pdf)
	b.Eval(`window.folded ?? -1`, &during)
	b.Eval(`document.querySelectorAll("main details:not([open])").length`, &after)
	if before == 0 || during != 0 || after != before || len(pdf.Data) < 4000 {
		t.Errorf("%d parts are folded before, %d while, and %d after printing to %d bytes", before, during, after, len(pdf.Data))
	}
}

// Without its script the page shows everything.
func pageWithoutScript(t *testing.T, b *browsertest.Browser) {
	b.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	b.Open(render(t, withSources(diagnosed(raceCause())), Options{Format: HTML}))
	var seen struct {
		Controls bool
		Marks    int
		Folds    int
	}
	b.Eval(`({Controls: document.querySelector(".controls").checkVisibility(), Marks: document.querySelectorAll("a.mark[href^='#']").length, Folds: document.querySelectorAll("main details").length})`, &seen)
	if seen.Controls || seen.Marks != 6 || seen.Folds == 0 {
		t.Errorf("%+v", seen)
	}
}
