package page

import (
	"context"
	"net"
	"strings"
	"testing"

	"diagnose/internal/browsertest"
)

// shown are the pages that the browser looks at, by the names of their pictures.
var shown = map[string]string{"morning": "/", "causes": "/causes?program=server", "failures": "/failures", "cause": "/cause/" + digest(0xc1), "hostile": "/cause/" + digest(0xc3),
	"failure": "/failure/" + digest(31), "tests": "/tests", "test": "/test?name=TestQueue%2Fparallel", "search": "/search?q=lock_a", "missing": "/nothing"}

// reachable serves a server on this machine, and returns its address.
func reachable(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, "", "") }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// TestInBrowser tests all pages in one browser, which takes seconds to start.
func TestInBrowser(t *testing.T) {
	b := browsertest.New(t)
	at := reachable(t, served(t, week(t), ""))
	for _, x := range []struct {
		name string
		test func(*testing.T, *browsertest.Browser, string)
	}{{"look", pagesLook}, {"keyboard", pagesByKeyboard}, {"names", pagesHaveNames}, {"brush", brush}, {"report", reportInFrame}, {"labels", labelsByForm}, {"no script", withoutScript}} {
		t.Run(x.name, func(t *testing.T) {
			b.T = t
			x.test(t, b, at)
		})
	}
}

// No page asks for anything from elsewhere or breaks its policy, no window is too narrow for it,
// and its text can be read in the light and the dark colours.
func pagesLook(t *testing.T, b *browsertest.Browser, at string) {
	for name, path := range shown {
		b.Size(1200, 900)
		b.Media("screen", "light")
		b.Visit(at + path)
		for _, c := range b.Complaints() {
			// The status of a page, the frame of a report and the browser's own picture of a calendar
			// are meant.
			if !strings.Contains(c, "/report") && !strings.Contains(c, "data:image/svg+xml") && (name != "missing" || !strings.Contains(c, "404")) {
				t.Errorf("%s: %s", name, c)
			}
		}
		for _, colors := range []string{"light", "dark"} {
			b.Media("screen", colors)
			b.Screenshot("serve-" + name + "-" + colors)
			for _, p := range b.Pale() {
				t.Errorf("%s: too little contrast in %s: %s", name, colors, p)
			}
		}
		for _, width := range []int{1200, 768, 320} {
			b.Size(width, 800)
			for _, p := range b.Wide() {
				t.Errorf("%s: wider than %d pixels: %s", name, width, p)
			}
		}
		b.Screenshot("serve-" + name + "-phone-dark")
		b.Media("screen", "light")
		b.Screenshot("serve-" + name + "-phone-light")
	}
}

// focused is the element that has the focus.
type focused struct {
	Tag, Text, Href string
	// Seen says that the focus is shown: by an outline, or by the colour of a bar.
	Seen, Inside bool
}

const focusedScript = `(() => { const e = document.activeElement, s = getComputedStyle(e), hit = e.querySelector(".hit");
	const r = e.getBoundingClientRect();
	return {Tag: e.tagName.toLowerCase(), Text: (e.getAttribute("aria-label") || e.textContent || e.name || "").trim().slice(0, 60), Href: e.getAttribute("href") || "",
		Seen: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 || !!hit && getComputedStyle(hit).strokeWidth === "2px", Inside: r.width > 0 && r.height > 0 && r.right > 0 && r.left < innerWidth}; })()`

// All that can be followed or filled in is reached by the tabulator, in the order of the page, and
// shows that it has the focus. The first step skips to the content.
func pagesByKeyboard(t *testing.T, b *browsertest.Browser, at string) {
	b.Size(1200, 900)
	b.Visit(at + "/")
	b.Press("Tab")
	var f focused
	if b.Eval(focusedScript, &f); f.Href != "#main" || !f.Inside {
		t.Errorf("the first step: %+v", f)
	}
	b.Press("Enter")
	b.Press("Tab")
	if b.Eval(focusedScript, &f); f.Href == "/" || f.Tag != "a" {
		t.Errorf("after the skip: %+v", f)
	}
	for _, path := range []string{"/", "/causes", "/failure/" + digest(31)} {
		b.Visit(at + path)
		// The keys of the developer tools do not leave a frame of another origin again.
		b.Eval(`document.querySelectorAll("iframe").forEach(f => f.remove())`, nil)
		var want int // bars are many, and of one kind
		b.Eval(`[...document.querySelectorAll("a[href], button, input:not([type=hidden]), summary, [tabindex='0']")].filter(e => e.checkVisibility()).length`, &want)
		seen := 0
		for range want + 20 { // a field of a day has several steps
			b.Press("Tab")
			f = focused{}
			if b.Eval(focusedScript, &f); f.Tag == "body" {
				break
			}
			seen++
			if !f.Seen || !f.Inside {
				t.Errorf("%s: the focus is not shown: %+v", path, f)
			}
		}
		if seen < want {
			t.Errorf("%s: only %d steps of %d", path, seen, want)
		}
	}
}

// Everything has a name for a screen reader: links, buttons, fields, pictures, frames, tables'
// heads. Headings go down by one level at a time, and each page has one of the first.
func pagesHaveNames(t *testing.T, b *browsertest.Browser, at string) {
	for name, path := range shown {
		b.Visit(at + path)
		var wrong []string
		b.Eval(`(() => { const list = [];
			const say = (what, e) => list.push(what + ": " + e.outerHTML.slice(0, 120));
			for (const e of document.querySelectorAll("a, button")) if (!(e.getAttribute("aria-label") || e.textContent).trim()) say("no name", e);
			for (const e of document.querySelectorAll("input:not([type=hidden])")) if (!e.labels.length || !e.labels[0].textContent.trim()) say("no label", e);
			for (const e of document.querySelectorAll("svg")) if (!e.getAttribute("role") || !e.getAttribute("aria-label")) say("no description", e);
			for (const e of document.querySelectorAll("iframe")) if (!e.title) say("no title", e);
			for (const e of document.querySelectorAll("table")) if (!e.querySelector("thead th[scope=col]")) say("no heads", e);
			let last = 0;
			for (const e of document.querySelectorAll("h1, h2, h3, h4")) { const n = +e.tagName[1]; if (n > last + 1) say("a level is left out", e); last = n; }
			if (document.querySelectorAll("h1").length !== 1 || document.querySelectorAll("main").length !== 1 || !document.documentElement.lang || !document.title) list.push("no head, main part, language or title");
			const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
			if (new Set(ids).size !== ids.length) list.push("ids twice: " + ids);
			return list; })()`, &wrong)
		for _, w := range wrong {
			t.Errorf("%s: %s", name, w)
		}
	}
}

// Days are selected by drawing over the bars; a bar alone is a link.
func brush(t *testing.T, b *browsertest.Browser, at string) {
	b.Size(1200, 900)
	b.Visit(at + "/failures")
	var box struct{ Left, Top, Width, Height float64 }
	b.Eval(`(() => { const s = document.querySelector(".bars"); s.scrollIntoView(); const r = s.getBoundingClientRect(); return {Left: r.left, Top: r.top, Width: r.width, Height: r.height}; })()`, &box)
	x := func(day float64) float64 { return box.Left + box.Width*(day+0.5)/shownDays }
	b.Drag(x(30), box.Top+box.Height/2, x(35), box.Top+box.Height/2)
	b.Loaded()
	var where string
	if b.Eval("location.search", &where); where != "?from=2026-03-09&to=2026-03-14" {
		t.Errorf("drawn: %s", where)
	}
	b.Screenshot("serve-brushed")
	b.Visit(at + "/failures")
	b.Eval(`document.querySelector(".bars").scrollIntoView()`, nil)
	b.Drag(x(41), box.Top+box.Height/2, x(41), box.Top+box.Height/2)
	b.Loaded()
	if b.Eval("location.search", &where); where != "?from=2026-03-20&to=2026-03-20" {
		t.Errorf("clicked: %s", where)
	}
}

// The report is shown in its frame with its own script, and cannot reach the page around it.
func reportInFrame(t *testing.T, b *browsertest.Browser, at string) {
	b.Visit(at + "/cause/" + digest(0xc1) + "/report")
	for _, c := range b.Complaints() {
		t.Error(c)
	}
	var seen struct {
		Ran    bool
		Origin string
	}
	if b.Eval(`({Ran: !document.querySelector(".controls").hidden, Origin: origin})`, &seen); !seen.Ran || seen.Origin != "null" {
		t.Errorf("%+v", seen)
	}
	b.Visit(at + "/cause/" + digest(0xc1))
	b.Eval(`document.querySelector("iframe").scrollIntoView()`, nil)
	var inside string
	if b.Eval(`(() => { try { return document.querySelector("iframe").contentDocument ? "open" : "closed"; } catch (e) { return "closed"; } })()`, &inside); inside != "closed" {
		t.Error("the frame shares the page's origin")
	}
}

// A label is set and removed by the forms.
func labelsByForm(t *testing.T, b *browsertest.Browser, at string) {
	b.Visit(at + "/failure/" + digest(31))
	b.Eval(`(() => { const f = document.querySelector("form.fields"); f.elements.key.value = "owner"; f.elements.value.value = "ann"; f.requestSubmit(); })()`, nil)
	b.Loaded()
	var text string
	if b.Eval(`document.querySelector("#labels table").textContent`, &text); !strings.Contains(text, "ann") {
		t.Errorf("set: %s", text)
	}
	b.Eval(`[...document.querySelectorAll("#labels tr")].find(r => r.textContent.includes("owner")).querySelector("form").requestSubmit()`, nil)
	b.Loaded()
	if b.Eval(`document.querySelector("#labels table").textContent`, &text); strings.Contains(text, "ann") {
		t.Errorf("removed: %s", text)
	}
}

// Without a script days are selected by the form, and everything is there but the hint.
func withoutScript(t *testing.T, b *browsertest.Browser, at string) {
	b.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	defer b.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)
	b.Size(320, 800)
	b.Visit(at + "/failures")
	var hint bool
	if b.Eval(`document.querySelector(".brush-hint").hidden`, &hint); !hint {
		t.Error("the script ran")
	}
	b.Eval(`(() => { const f = document.querySelector(".brush"); f.elements.from.value = "2026-03-19"; f.elements.to.value = "2026-03-20"; f.requestSubmit(); })()`, nil)
	b.Loaded()
	var seen struct{ Where, Text string }
	b.Eval(`({Where: location.search, Text: document.querySelector(".pages").textContent})`, &seen)
	if seen.Where != "?from=2026-03-19&to=2026-03-20" || !strings.Contains(seen.Text, "1 to 7 of 7") {
		t.Errorf("%+v", seen)
	}
	b.Screenshot("serve-noscript-phone")
}
