package tracker

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/reports/tracker/trackertest"
)

// From the first night on: opened, commented once a night, left closed, reopened.
func TestContractLife(t *testing.T) {
	each(t, func(t *testing.T, s *trackertest.Server) {
		h, _ := opened(t, s, false)
		r := testReport()
		first := upsert(t, h, r, Opened)
		if !first.Attached || first.Note != "" || !strings.HasPrefix(first.URL, s.URL) {
			t.Errorf("%+v", first)
		}
		is := s.Issues[0]
		if !strings.Contains(is.Body, "3 failures so far") || keyOf(is.Body) != Key(testDigest) || is.Title != "abort in withdraw" || strings.Contains(is.Body+strings.Join(is.Files, ""), "hunter2") {
			t.Errorf("%q: %q", is.Title, is.Body)
		}
		if s.Kind != "github" && (len(is.Files) != 1 || s.Kind != "gitlab" && !strings.Contains(is.Files[0], "abort in withdraw")) {
			t.Errorf("files %q", is.Files)
		}
		r.Issue, r.Attached = first.Issue, true
		upsert(t, h, r, Commented)
		upsert(t, h, r, Quiet)
		r.Issue = "" // a corpus that does not know the issue
		upsert(t, h, r, Quiet)
		last := is.Comments[len(is.Comments)-1].Body
		if !strings.Contains(last, "2 failures since") || !strings.Contains(last, "3 in all") {
			t.Errorf("%q", last)
		}
		is.Set(false, "")
		was := is.Closed
		upsert(t, h, r, LeftClosed)
		r.BackSince = func(closed time.Time) string {
			if d := closed.Sub(was); d > time.Second || d < -time.Second {
				t.Errorf("closed at %v, want %v", closed, was)
			}
			return "e7"
		}
		if got := upsert(t, h, r, Reopened); !is.Open || got.Issue != first.Issue {
			t.Errorf("%+v", got)
		}
		if last := is.Comments[len(is.Comments)-1].Body; !strings.Contains(last, "It is back") || !strings.Contains(last, "e7") {
			t.Errorf("%q", last)
		}
		upsert(t, h, r, Quiet)
		if len(s.Issues) != 1 {
			t.Errorf("%d issues", len(s.Issues))
		}
	})
}

func TestContractClosedForGood(t *testing.T) {
	each(t, func(t *testing.T, s *trackertest.Server) {
		h, _ := opened(t, s, false)
		r := testReport()
		upsert(t, h, r, Opened)
		r.BackSince = func(time.Time) string { return "e7" }
		reasons := []string{"duplicate", "not_planned"}
		switch s.Kind {
		case "gitea": // Gitea has no reasons for closing
			return
		case "gitlab":
			reasons = reasons[:1]
		}
		for _, reason := range reasons {
			s.Issues[0].Open, s.Issues[0].Reason, s.Issues[0].Closed = false, reason, time.Now()
			upsert(t, h, r, LeftClosed)
			if s.Issues[0].Open {
				t.Errorf("%s: it is open", reason)
			}
		}
	})
}

// There is one issue even while the index does not have it yet.
func TestContractSearchLag(t *testing.T) {
	each(t, func(t *testing.T, s *trackertest.Server) {
		s.Lag = true
		for range 70 { // later the issue is not on the first page
			s.Add("another", "Key: none")
		}
		h, _ := opened(t, s, false)
		upsert(t, h, testReport(), Opened)
		other, _ := opened(t, s, false)
		r := testReport()
		if s.Kind == "jira" {
			if got := upsert(t, other, r, Quiet); len(got.Duplicates) != 1 {
				t.Errorf("%+v", got)
			}
		} else {
			for range 60 {
				s.Add("another", "Key: none")
			}
			upsert(t, other, r, Commented)
		}
		ours := 0
		for _, is := range s.Issues {
			if is.Open && keyOf(is.Body) == Key(testDigest) {
				ours++
			}
		}
		if ours != 1 {
			t.Errorf("%d issues are open", ours)
		}
	})
}

// Two hosts that both saw no issue open one each, and one remains.
func TestContractTwoHosts(t *testing.T) {
	each(t, func(t *testing.T, s *trackertest.Server) {
		s.Lag = s.Kind == "jira"
		var both sync.WaitGroup
		both.Add(2)
		var once sync.Map
		s.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == "POST" {
				if _, seen := once.LoadOrStore(r.Header.Get("X-Host"), true); !seen {
					both.Done()
					both.Wait()
				}
			}
			return false
		})
		var group sync.WaitGroup
		results := make([]Result, 2)
		for i := range results {
			h, _ := opened(t, s, false)
			h.header.Set("X-Host", fmt.Sprint(i))
			group.Go(func() {
				var err error
				if results[i], err = h.Upsert(context.Background(), testReport()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if open := s.Opened(); len(open) != 1 || open[0] != 1 {
			t.Errorf("open: %v; %+v", open, results)
		}
		if results[0].Issue != results[1].Issue || (results[0].Action == Opened) == (results[1].Action == Opened) {
			t.Errorf("%+v", results)
		}
		want := 2
		if s.Kind == "bugzilla" { // its aliases are unique
			want = 1
		}
		if len(s.Issues) != want {
			t.Errorf("%d issues were made", len(s.Issues))
		}
		s.Lag = false
		s.Answer(nil)
		h, _ := opened(t, s, false)
		if got := upsert(t, h, testReport(), Commented); got.Issue != results[0].Issue {
			t.Errorf("%+v", got)
		}
	})
}

// A host that died between opening an issue and the check leaves two. The next night closes one.
func TestContractLeftOverDuplicate(t *testing.T) {
	each(t, func(t *testing.T, s *trackertest.Server) {
		for range 2 {
			is := s.Add("x", "text\n\nKey: "+Key(testDigest)+"\n")
			is.Labels = []string{Key(testDigest)}
		}
		h, _ := opened(t, s, false)
		if got := upsert(t, h, testReport(), Commented); len(got.Duplicates) != 1 {
			t.Errorf("%+v", got)
		}
		if open := s.Opened(); len(open) != 1 || open[0] != 1 {
			t.Errorf("open: %v", open)
		}
	})
}

func TestContractDryRun(t *testing.T) {
	each(t, func(t *testing.T, s *trackertest.Server) {
		h, _ := opened(t, s, true)
		if got := upsert(t, h, testReport(), Opened); got.Issue != "" {
			t.Errorf("%+v", got)
		}
		is := s.Add("x", "Key: "+Key(testDigest))
		is.Labels = []string{Key(testDigest)}
		upsert(t, h, testReport(), Commented)
		is.Set(false, "")
		r := testReport()
		r.BackSince = func(time.Time) string { return "e7" }
		upsert(t, h, r, Reopened)
		if s.Changes() != 0 || is.Open || len(is.Comments) != 0 {
			t.Errorf("it changed something: %q", s.Log)
		}
	})
}

// A text that is refused for its length is tried once more, shorter.
func TestContractTooLong(t *testing.T) {
	// The words are those of the trackers themselves.
	refusals := map[string]struct {
		status int
		text   string
	}{
		"github":   {422, `{"message": "Validation Failed", "errors": [{"resource": "Issue", "code": "custom", "field": "body", "message": "body is too long (maximum is 65536 characters)"}]}`},
		"gitlab":   {400, `{"message": {"description": ["is too long (maximum is 1048576 characters)"]}}`},
		"gitea":    {413, `{"message": "no"}`},
		"jira":     {400, `{"errorMessages": [], "errors": {"description": "The entered text is too long. It exceeds the allowed limit of 32,767 characters."}}`},
		"bugzilla": {400, `{"error": true, "code": 114, "message": "Comments cannot be longer than 65535 characters."}`},
	}
	each(t, func(t *testing.T, s *trackertest.Server) {
		limit, refused := 8000, 0
		s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != "POST" || r.ContentLength <= int64(limit) || strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") || strings.HasSuffix(r.URL.Path, "/attachment") {
				return false
			}
			refused++
			w.WriteHeader(refusals[s.Kind].status)
			fmt.Fprint(w, refusals[s.Kind].text)
			return true
		})
		r := testReport()
		frames := make([]evidence.Frame, 120)
		for i := range frames {
			frames[i] = evidence.Frame{Index: i, Kind: evidence.Physical, Trust: evidence.TrustCFI, Site: evidence.Site{Function: fmt.Sprintf("a_function_with_a_name_that_is_long_enough_%d", i), File: "/src/server/withdraw.c", Line: i + 1}}
		}
		r.Case.Stacks = []evidence.ThreadGroup{{Threads: []evidence.ThreadRef{{Number: 1, TID: 7}}, Stack: evidence.Stack{Frames: frames}}}
		h, _ := opened(t, s, false)
		got := upsert(t, h, r, Opened)
		if refused != 1 || len(s.Issues) != 1 || !strings.Contains(got.Note, "refused a text of") {
			t.Fatalf("%d refusals, %d issues, %+v", refused, len(s.Issues), got)
		}
		if body := s.Issues[0].Body; len(body) >= limit || keyOf(body) != Key(testDigest) || !strings.Contains(body, "Left out or cut") || !strings.Contains(body, "abort in withdraw") {
			t.Errorf("%q", body)
		}
		limit, refused, s.Issues = 100, 0, nil
		if _, err := h.Upsert(context.Background(), r); kindOf(err) != Refused || refused != 2 || len(s.Issues) != 0 {
			t.Errorf("%v after %d refusals", err, refused)
		}
		r = testReport() // it is as short as it can be
		refused = 0
		if _, err := h.Upsert(context.Background(), r); kindOf(err) != Refused || refused != 1 {
			t.Errorf("%v after %d refusals", err, refused)
		}
	})
}
