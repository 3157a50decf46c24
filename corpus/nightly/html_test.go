package nightly

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"diagnose/internal/browsertest"
)

func pageOf(t testing.TB, s *Summary, opts PageOptions) string {
	t.Helper()
	var page bytes.Buffer
	if err := s.WriteHTML(&page, opts); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

var (
	pageTags  = regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>|<[^>]*>`)
	pageLinks = regexp.MustCompile(`\shref="([^"]*)"`)
	pageIDs   = regexp.MustCompile(`\sid="([^"]*)"`)
)

// The page has all words of the text except for addresses, which its links have. Its links lead
// to existing parts and to the reports and issues only.
func TestPageSaysWhatTheTextSays(t *testing.T) {
	s := sampleSummary()
	page := pageOf(t, s, samplePage(s))
	shown := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&#43;", "+", "&amp;", "&").Replace(pageTags.ReplaceAllString(page, " "))
	var text bytes.Buffer
	if err := s.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(text.String()) {
		if word = strings.Trim(word, ",;:()"); !strings.Contains(shown, word) && !strings.Contains(word, "://") && !strings.Contains(word, "alert") {
			t.Errorf("the page lacks %q", word)
		}
	}
	ids := map[string]int{}
	for _, m := range pageIDs.FindAllStringSubmatch(page, -1) {
		if ids[m[1]]++; ids[m[1]] > 1 {
			t.Errorf("%d parts are called %s", ids[m[1]], m[1])
		}
	}
	var outside []string
	for _, m := range pageLinks.FindAllStringSubmatch(page, -1) {
		if to, local := strings.CutPrefix(m[1], "#"); !local {
			outside = append(outside, m[1])
		} else if ids[to] != 1 {
			t.Errorf("a link to %s, which is not there", m[1])
		}
	}
	var want []string
	for _, g := range []Group{s.New[0], s.New[1], s.Back[0], s.Known[0]} {
		want = append(want, "causes/"+g.Digest+".html")
	}
	want = append(want, "https://github.com/acme/server/issues/17", "https://github.com/acme/server/issues/17") // at the cause, and in the table
	slices.Sort(want)
	slices.Sort(outside)
	if !slices.Equal(outside, want) {
		t.Errorf("it leads to\n%q, want\n%q", outside, want)
	}
	for _, says := range []string{"its report cannot be shown: it has no case", "diagnose corpus show ef00112233 --report", "failures in each 24 hours, the latest last: 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3"} {
		if !strings.Contains(shown+page, says) {
			t.Errorf("%q is not in the page", says)
		}
	}
}

// No digest of 32 digits is shown, even if a tracker names its issues by them. A trend has its
// numbers.
func TestPageIsForReaders(t *testing.T) {
	s := sampleSummary()
	digest := strings.Repeat("0123456789abcdef", 2)
	s.New[0].Digest, s.Tracking.Issues[0].Digest, s.Tracking.Issues[0].Issue, s.Tracking.Issues[0].URL = digest, digest, digest, "/srv/issues"
	shown := pageTags.ReplaceAllString(pageOf(t, s, PageOptions{}), " ")
	if long := regexp.MustCompile(`[0-9a-f]{32}`).FindString(shown); long != "" || !strings.Contains(shown, "Issue "+digest[:12]) {
		t.Errorf("the page shows %q, or no short name of the issue", long)
	}
	for _, says := range []string{"rising from 0 to 4, 9 in all", "falling from 5 to 2", "steady at 3"} {
		if !strings.Contains(shown, says) {
			t.Errorf("%q is missing in %s", says, shown)
		}
	}
	if bare := regexp.MustCompile(`(rising|falling)[^ ]| (rising|falling) [^f]`).FindString(shown); bare != "" {
		t.Errorf("a trend without numbers: %q", bare)
	}
}

// A table that would be too long for a reader says how much is missing.
func TestLongPage(t *testing.T) {
	s := sampleSummary()
	for i := range 3 * mostRows {
		g := groupOf("d", "abort", "abort in withdraw", 1)
		g.Digest = fmt.Sprintf("%032x", i)
		s.Known = append(s.Known, g)
		s.Undiagnosed = append(s.Undiagnosed, s.Undiagnosed[0])
	}
	page := pageOf(t, s, PageOptions{})
	if n := strings.Count(page, "<tr id=\"cluster-"); n != mostRows+1 || strings.Count(page, fmt.Sprintf("and %d more, in the JSON form", 2*mostRows+2)) != 1 ||
		strings.Count(page, fmt.Sprintf("and %d more, in the JSON form", 2*mostRows+1)) != 1 {
		t.Errorf("%d rows: %d bytes", n, len(page))
	}
}

func TestTrend(t *testing.T) {
	x := trendOf([]int{0, 1, 1000, 4}, 1)
	if x.Bars[0].Class != "none" || x.Bars[1].Height != 2 || x.Bars[2].Height != x.Height || x.Bars[3].Class != "latest" || x.Bars[3].X+x.Bars[3].Width != x.Width {
		t.Errorf("%+v", x)
	}
	for _, b := range x.Bars {
		if b.Y+b.Height != x.Height {
			t.Errorf("%+v does not stand on the ground", b)
		}
	}
	if x := trendOf(nil, 1); len(x.Bars) != 0 || x.Width < 1 {
		t.Errorf("%+v", x)
	}
}

// TestPages looks at pages of nights in one browser, whose start takes seconds.
func TestPages(t *testing.T) {
	b := browsertest.New(t)
	empty := &Summary{Run: Run{Version: "1.2", Started: when, Ended: when}, Since: when.AddDate(0, 0, -7), Before: when.AddDate(0, 0, -14)}
	sample := sampleSummary()
	pages := map[string]string{"night": pageOf(t, sample, samplePage(sample)), "night-empty": pageOf(t, empty, PageOptions{}), "night-hostile": pageOf(t, hostileSummary(), PageOptions{})}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			b.T = t
			lookAt(t, b, name, page)
		})
	}
	t.Run("keyboard", func(t *testing.T) {
		b.T = t
		pageByKeyboard(t, b)
	})
}

// lookAt checks that a page loads without an error and without anything from elsewhere, fits
// its window, can be read in both colours, and prints completely.
func lookAt(t *testing.T, b *browsertest.Browser, name, page string) {
	b.Size(1200, 900)
	b.Media("screen", "light")
	b.Open(page)
	for _, c := range b.Complaints() {
		t.Error(c)
	}
	var seen struct {
		Ran                    bool
		Title                  string
		Scripts, Images, Parts int
	}
	b.Eval(`({Ran: !document.querySelector(".controls").hidden, Title: document.title, Scripts: document.scripts.length,
		Images: document.querySelectorAll("img, iframe, object, link").length, Parts: document.querySelectorAll("main .part").length})`, &seen)
	if !seen.Ran || seen.Scripts != 1 || seen.Images != 0 || seen.Parts == 0 || !strings.HasPrefix(seen.Title, "diagnose nightly: ") {
		t.Errorf("%+v", seen)
	}
	for _, colors := range []string{"light", "dark"} {
		b.Media("screen", colors)
		b.Screenshot(name + "-" + colors)
		b.Eval(`document.querySelectorAll("details").forEach(d => { d.open = true; })`, nil)
		for _, p := range b.Pale() {
			t.Errorf("too little contrast in %s: %s", colors, p)
		}
	}
	for _, width := range []int{1200, 800, 360} {
		b.Size(width, 800)
		for _, p := range b.Wide() {
			t.Errorf("wider than %d pixels: %s", width, p)
		}
	}
	b.Screenshot(name + "-narrow")
	b.Size(1000, 900)
	b.Eval(`document.querySelectorAll("details").forEach(d => { d.open = false; })`, nil)
	b.Media("print", "dark")
	var paper struct {
		Folded, Wide []string
		Paper        string
		Navigation   bool
	}
	b.Eval(`({Folded: [...document.querySelectorAll("main details > :not(summary)")].filter(e => e.textContent.trim() && !e.checkVisibility()).map(e => e.textContent.slice(0, 60)),
		Wide: [...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + ": " + e.textContent.slice(0, 60)).slice(0, 3),
		Paper: getComputedStyle(document.body).backgroundColor, Navigation: document.querySelector("nav").checkVisibility()})`, &paper)
	if len(paper.Folded)+len(paper.Wide) > 0 || paper.Navigation || paper.Paper != "rgb(255, 255, 255)" {
		t.Errorf("on paper: %+v", paper)
	}
	b.Screenshot(name + "-print")
}

// Tab reaches each report, with a visible focus, and Enter follows the link.
func pageByKeyboard(t *testing.T, b *browsertest.Browser) {
	s := sampleSummary()
	opts := samplePage(s)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "causes"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"summary.html": pageOf(t, s, opts), opts.Reports[s.Back[0].Digest]: "<!DOCTYPE html><title>the report</title>"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.Size(1200, 900)
	b.Media("screen", "light")
	b.OpenFile(filepath.Join(dir, "summary.html"))
	reached := map[string]bool{}
	var at struct {
		To      string
		Outline string
		Open    bool
	}
	const focus = `(() => { const e = document.activeElement; return {To: e.getAttribute("href") ?? e.tagName, Outline: getComputedStyle(e).outlineStyle, Open: e.parentElement.open === true}; })()`
	opened := false
	for range 200 {
		b.Press("Tab")
		b.Eval(focus, &at)
		if at.Outline == "none" {
			t.Errorf("it is not visible that %s has the focus", at.To)
		}
		reached[at.To] = true
		if at.To == "SUMMARY" && !opened {
			b.Press("Enter")
			b.Eval(focus, &at)
			if opened = at.Open; !opened {
				t.Error("Enter does not unfold")
			}
		}
		if at.To == opts.Reports[s.Known[0].Digest] {
			break
		}
	}
	for digest, to := range opts.Reports {
		if !reached[to] {
			t.Errorf("Tab does not reach the report of %s", digest)
		}
	}
	b.Eval(fmt.Sprintf(`document.querySelector('a[href=%q]').focus()`, opts.Reports[s.Back[0].Digest]), nil)
	b.Press("Enter")
	b.Loaded()
	var title string
	if b.Eval(`document.title`, &title); title != "the report" || !opened {
		t.Errorf("Enter leads to %q", title)
	}
}
