package reports

import (
	"strings"
	"testing"

	"diagnose/evidence"
)

// A proved cause is the first line of every format and the title of a page and of an issue, and the
// failure follows it. A cause that is not proved follows the failure.
func TestHeadline(t *testing.T) {
	proved, replayed := diagnosed(raceCause()), diagnosed(raceCause())
	replayed.Diagnosis.Causes[0].Proof, replayed.Diagnosis.Causes[0].Grounds = evidence.Replayed, nil
	for name, x := range map[string]struct {
		c             *evidence.Case
		first, second string
	}{
		"proved":   {proved, proved.Diagnosis.Causes[0].Summary, proved.Failure.Sentence},
		"replayed": {replayed, replayed.Failure.Sentence, replayed.Diagnosis.Causes[0].Summary},
		"unknown":  {diagnosed(), diagnosed().Failure.Sentence, ""},
	} {
		for _, format := range []Format{Text, HTML, Markdown} {
			page := render(t, x.c, Options{Format: format})
			if format != Text {
				page = plainText(strings.ReplaceAll(page, `\`, ""))
			}
			first, second := strings.Index(page, x.first), strings.Index(page, x.second)
			if first < 0 || second < 0 || x.second != "" && first > second {
				t.Errorf("%s, %s: the headline is not %q before %q:\n%.300s", name, format, x.first, x.second, page)
			}
		}
		html := render(t, x.c, Options{Format: HTML})
		_, title, _ := strings.Cut(html, "<title>")
		_, lead, _ := strings.Cut(html, "<h1>")
		if !strings.HasPrefix(plainText(title), x.first) || !strings.HasPrefix(strings.TrimSpace(plainText(lead)), x.first) {
			t.Errorf("%s: the page's title is not the headline", name)
		}
		if title := writeIssue(t, x.c, GitHubIssue).Title; title != x.first {
			t.Errorf("%s: the issue's title is %q", name, title)
		}
	}
	if got := headlineOf(proved).document(); !got.OfCause || got.Proof != evidence.Proved || got.Text != proved.Diagnosis.Causes[0].Summary {
		t.Errorf("the JSON form's headline is %+v", got)
	}
}
