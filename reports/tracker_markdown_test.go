package reports

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"diagnose/evidence"
	"diagnose/evidence/signature"
)

var trackers = map[string]IssueOptions{"github": GitHubIssue, "gitlab": GitLabIssue, "gitea": GiteaIssue, "jira": JiraIssue, "bugzilla": BugzillaIssue}

func writeIssue(t *testing.T, c *evidence.Case, opts IssueOptions) Issue {
	t.Helper()
	issue, err := WriteIssue(c, opts)
	if err != nil {
		t.Fatal(err)
	}
	return issue
}

func TestIssueGolden(t *testing.T) {
	c := diagnosed(raceCause(), overflowCause())
	for file, opts := range map[string]IssueOptions{"issue.github.md": GitHubIssue, "issue.jira.txt": JiraIssue} {
		opts.Version = "1.2"
		issue := writeIssue(t, c, opts)
		if len(issue.LeftOut) > 0 {
			t.Errorf("%s leaves out %v", file, issue.LeftOut)
		}
		text := "Title: " + issue.Title + "\n\n" + issue.Body
		compareGolden(t, file, regexp.MustCompile(`\b[0-9a-f]{32}\b`).ReplaceAllString(text, "(a signature)"))
	}
}

// An issue fits however long the report is. It starts with the most important parts, closes all
// that it opens, and names the parts left out.
func TestIssuesFit(t *testing.T) {
	big := diagnosed(raceCause(), overflowCause())
	for n := range 400 {
		g := big.Stacks[1]
		g.Threads = []evidence.ThreadRef{{Number: n + 10, TID: n + 5000}}
		g.Stack = deepStack(12)
		big.Stacks = append(big.Stacks, g)
	}
	long := sample()
	long.Failure.Sentence = strings.Repeat("\u00e9<b>@all ", 1<<15)
	long.Stacks[0].Stack.Frames[0].Site.Function = strings.Repeat("x", 1<<20)
	many := diagnosed()
	for range 60 {
		many.Diagnosis.Causes = append(many.Diagnosis.Causes, raceCause())
	}
	for tracker, base := range trackers {
		for name, c := range map[string]*evidence.Case{"big": big, "long": long, "many": many} {
			for _, size := range []int{minBody, base.MaxBody} {
				opts := base
				opts.MaxBody = size
				issue := writeIssue(t, c, opts)
				where := fmt.Sprintf("%s, %s, %d bytes", tracker, name, size)
				if len(issue.Body) > size || len(issue.Title) > opts.MaxTitle || !utf8.ValidString(issue.Body+issue.Title) {
					t.Errorf("%s: %d bytes with a title of %d", where, len(issue.Body), len(issue.Title))
				}
				if name == "big" && size > minBody && len(issue.Body) < size/2 {
					t.Errorf("%s: %d bytes only", where, len(issue.Body))
				}
				if size < base.MaxBody && len(issue.LeftOut) == 0 {
					t.Errorf("%s: nothing is left out", where)
				}
				for _, part := range issue.LeftOut[:min(1, len(issue.LeftOut))] {
					if !strings.Contains(issue.Body, "Left out or cut") || !strings.Contains(issue.Body, part) {
						t.Errorf("%s: it does not say that it lacks %s", where, part)
					}
				}
				if open, closed := strings.Count(issue.Body, "<details>"), strings.Count(issue.Body, "</details>"); open != closed {
					t.Errorf("%s: %d details opened, %d closed", where, open, closed)
				}
				if n := strings.Count(issue.Body, "\n```"); base.Markup == MarkupGitHub && n%2 != 0 {
					t.Errorf("%s: %d fences", where, n)
				}
				if n := strings.Count(issue.Body, "{noformat}"); n%2 != 0 {
					t.Errorf("%s: %d marks of preformatted text", where, n)
				}
			}
		}
	}
	if _, err := WriteIssue(big, IssueOptions{Markup: MarkupGitHub, MaxTitle: 100, MaxBody: 100}); err == nil {
		t.Error("a body of 100 bytes is written")
	}
	if _, err := WriteIssue(big, IssueOptions{Markup: "html", MaxTitle: 100, MaxBody: 10000}); err == nil {
		t.Error("an unknown markup is written")
	}
}

// unescaped leaves out the characters whose meaning a backslash takes away.
func unescaped(text string) string {
	return regexp.MustCompile(`\\.`).ReplaceAllString(text, "")
}

// fenced is the text in blocks of code.
var fenced = regexp.MustCompile("(?ms)^(```+)\n.*?^(```+)$")

// Nothing of the target mentions a person, refers to an issue, or is markup.
func TestIssuesCallNobody(t *testing.T) {
	const evil = "@octocat fixes #1, GH-2, org/repo#3 !4 ~bug https://evil.example www.evil.example <img src=x> [a](http://b) ![c](d) {noformat} h1. x |y| {color:red} \x1b[31m"
	c := hostileCase(evil)
	for tracker, opts := range trackers {
		issue := writeIssue(t, c, opts)
		if strings.ContainsAny(issue.Body+issue.Title, "\x1b\x07") || strings.Contains(issue.Title, "\n") {
			t.Errorf("%s: control characters", tracker)
		}
		switch opts.Markup {
		case MarkupGitHub:
			open := fenced.ReplaceAllString(issue.Body, "")
			open = unescaped(open)
			for _, sign := range []string{"@octocat", "#1", "#3", "GH-2", "!4", "~bug", "https://", "www.evil", "<img", "](", "[a]"} {
				if strings.Contains(open, sign) {
					t.Errorf("%s: %s is in the text", tracker, sign)
				}
			}
			for _, tag := range regexp.MustCompile(`<[^>]*>`).FindAllString(open, -1) {
				switch tag {
				case "<span>", "</span>", "<details>", "</details>", "<summary>", "</summary>":
				default:
					t.Errorf("%s: the element %s", tracker, tag)
				}
			}
		case MarkupJira:
			open := regexp.MustCompile(`(?s)\{noformat\}\n.*?\n\{noformat\}\n`).ReplaceAllString(issue.Body, "")
			open = unescaped(open)
			for _, sign := range []string{" [a]", "{color", "{noformat", "https://", "!["} {
				if strings.Contains(open, sign) {
					t.Errorf("%s: %s is in the text", tracker, sign)
				}
			}
		}
	}
}

// The title is the cause, secrets are replaced, and the signature is the case's.
func TestIssueIdentity(t *testing.T) {
	c := diagnosed(raceCause())
	issue := writeIssue(t, c, GitHubIssue)
	if want := raceCause().Summary; issue.Title != want {
		t.Errorf("title %q, want %q", issue.Title, want)
	}
	s := signature.Of(c)
	if issue.Signature.Cause != s.Cause || s.Cause == "" || !strings.Contains(issue.Body, "cause "+s.Cause+", stack "+s.Stack) {
		t.Errorf("signature %+v, want %+v", issue.Signature, s)
	}
	if strings.Contains(issue.Body, "hunter2") {
		t.Error("the password is in the issue")
	}
	if title := writeIssue(t, sample(), JiraIssue).Title; title != sample().Failure.Sentence {
		t.Errorf("without a cause the title is %q", title)
	}
}
