package reports

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"diagnose/evidence"
)

// The timeline of a memory error begins with the calls for the object, has every step of the story,
// and ends with the failure, each in the lane of its thread.
func TestTimelineOfAStory(t *testing.T) {
	freed, overflow := freedCause(), overflowCause()
	owner := &evidence.HeapThread{Ref: &evidence.ThreadRef{Number: 4, Start: "owner"}}
	freed.Object.Allocated.Thread, freed.Object.Freed.Thread = owner, owner
	overflow.Object = freed.Object
	told := freedCause()
	told.Object = freed.Object
	told.Story[0].Access.Site, told.Story[0].Access.ByHeap = freed.Object.Freed.Site, true
	failure := sample().Failure
	last := overflowCause()
	last.Story[1].Site = failure.Site
	for name, x := range map[string]struct {
		cause evidence.Cause
		want  string
	}{
		"free before the store":       {freed, "4 allocated, 4 freed, 1 write, 1 step, 3 failure"},
		"free after the overflow":     {overflow, "4 allocated, 1 write, 1 step, 3 failure"},
		"the story tells of the free": {told, "4 allocated, 1 freed, 1 step, 3 failure"},
		"it ends with the failure":    {last, "1 write, 3 failure"},
		"no story":                    {evidence.Cause{}, "3 failure"},
	} {
		var got []string
		for _, h := range ofStory(&x.cause, &failure) {
			got = append(got, fmt.Sprintf("%d %s", h.lane.thread, h.kind))
		}
		if text := strings.Join(got, ", "); text != x.want {
			t.Errorf("%s: %s, want %s", name, text, x.want)
		}
	}
	if list := ofStory(&evidence.Cause{}, &evidence.Failure{}); list != nil {
		t.Errorf("of nothing known: %+v", list)
	}
	// Of a loop's stores two are drawn.
	loop := overflowCause()
	for range 9 {
		loop.Story = append(loop.Story, loop.Story[0])
	}
	loop.Story = loop.Story[2:]
	if list := ofStory(&loop, &failure); len(list) != 3 || !strings.Contains(fmt.Sprint(list[0].facts), "8 more by the same instruction") {
		t.Errorf("a loop is %d marks: %+v", len(list), list)
	}
}

var sourceRow = regexp.MustCompile(`<td class="number">(\d+)</td>`)

// A page has every line of source once, with the marks of all causes.
func TestSourceIsShownOnce(t *testing.T) {
	for name, c := range htmlCases() {
		page := render(t, c, Options{Format: HTML})
		for _, file := range strings.Split(page, `<figure class="source">`)[1:] {
			file, _, _ = strings.Cut(file, "</figure>")
			seen := map[string]bool{}
			for _, m := range sourceRow.FindAllStringSubmatch(file, -1) {
				if seen[m[1]] {
					t.Errorf("%s: line %s is there twice", name, m[1])
				}
				seen[m[1]] = true
			}
		}
		captions := map[string]bool{}
		for _, m := range regexp.MustCompile(`<figure class="source"><figcaption>(.*?)</figcaption>`).FindAllStringSubmatch(page, -1) {
			if captions[m[1]] {
				t.Errorf("%s: the file %s is there twice", name, m[1])
			}
			captions[m[1]] = true
		}
	}
	race := render(t, withSources(diagnosed(raceCause(), overflowCause())), Options{Format: HTML})
	for _, want := range []string{`<td class="mark">1</td><td class="number">31</td>`, `<td class="mark">2,3</td><td class="number">35</td>`} {
		if !strings.Contains(race, want) {
			t.Errorf("%s is missing", want)
		}
	}
}
