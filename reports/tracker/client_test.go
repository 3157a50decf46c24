package tracker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"diagnose/reports/tracker/trackertest"
)

// A refused request gives the right kind of error, is made once, and the error does not have the
// token.
func TestContractNo(t *testing.T) {
	each(t, func(t *testing.T, s *trackertest.Server) {
		for status, want := range map[int]Kind{400: Refused, 401: Denied, 403: Denied, 404: Missing, 409: Refused, 410: Missing, 422: Refused} {
			s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == "GET" {
					return false
				}
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"error": true, "message": "no\u001b[2J: %s", "errorMessages": ["no: %s"]}`, trackertest.Token, trackertest.Token)
				return true
			})
			s.Log = nil
			h, _ := opened(t, s, false)
			_, err := h.Upsert(context.Background(), testReport())
			if kindOf(err) != want || Final(err) != (want != Refused) || s.Changes() != 1 {
				t.Errorf("%d: %v after %d requests, want %s", status, err, s.Changes(), want)
			}
			if text := fmt.Sprintf("%v %+v %#v", err, err, h.secret); strings.Contains(text, trackertest.Token) || strings.ContainsRune(err.Error(), 0x1b) || !strings.Contains(text, "no") {
				t.Errorf("%d: %q", status, text)
			}
		}
	})
}

// The client waits after a limit as long as the tracker says, and after 5xx with growing pauses.
func TestContractWaits(t *testing.T) {
	reset := time.Now().Add(90 * time.Second)
	for name, c := range map[string]struct {
		status    int
		header    map[string]string
		body      string
		low, high time.Duration
	}{
		"Retry-After":                     {429, map[string]string{"Retry-After": "7"}, "", 6 * time.Second, 8 * time.Second},
		"date":                            {503, map[string]string{"Retry-After": reset.UTC().Format(http.TimeFormat)}, "", 80 * time.Second, 92 * time.Second},
		"GitHub's limit":                  {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": fmt.Sprint(reset.Unix())}, "", 80 * time.Second, 92 * time.Second},
		"GitLab's limit":                  {429, map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": fmt.Sprint(reset.Unix())}, "", 80 * time.Second, 92 * time.Second},
		"GitLab's of one kind of request": {429, map[string]string{"RateLimit-Remaining": "595", "RateLimit-Reset": fmt.Sprint(reset.Unix())}, `{"message":{"error":"This endpoint has been requested too many times. Try again later."}}`, 59 * time.Second, 62 * time.Second},
		"Jira's limit":                    {429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset.UTC().Format("2006-01-02T15:04Z")}, "", 20 * time.Second, 92 * time.Second},
		"GitHub's second limit":           {403, nil, `{"message": "You have exceeded a secondary rate limit."}`, 59 * time.Second, 62 * time.Second},
		"out of order":                    {502, nil, "<html>", 400 * time.Millisecond, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := trackertest.New(t, "github")
			left := 1
			s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				if left--; left < 0 {
					return false
				}
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
				return true
			})
			h, waits := opened(t, s, false)
			upsert(t, h, testReport(), Opened)
			if len(*waits) == 0 || (*waits)[0] < c.low || (*waits)[0] > c.high {
				t.Errorf("waits %v, want the first from %v to %v", *waits, c.low, c.high)
			}
		})
	}
}

// The client gives up when the budget is spent, and reports the time from which a request may
// succeed.
func TestContractDown(t *testing.T) {
	each(t, func(t *testing.T, s *trackertest.Server) {
		s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(429)
			return true
		})
		h, waits := opened(t, s, false)
		_, err := h.Upsert(context.Background(), testReport())
		var e *Error
		if !errors.As(err, &e) || e.Kind != Down || time.Until(e.Until) < 23*time.Hour || len(*waits) != 0 || len(s.Log) != 1 {
			t.Errorf("%v, after waits %v and %q", err, *waits, s.Log)
		}
		s.Answer(func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(500); return true })
		s.Log = nil
		if _, err := h.Upsert(context.Background(), testReport()); kindOf(err) != Down || len(s.Log) != mostTries || len(*waits) != mostTries-1 {
			t.Errorf("%v after %d requests and waits %v", err, len(s.Log), *waits)
		}
		s.Close()
		if _, err := h.Upsert(context.Background(), testReport()); kindOf(err) != Down || !Final(err) {
			t.Errorf("%v", err)
		}
	})
}

// An issue whose answer was lost exists, and is not created again.
func TestContractLostAnswer(t *testing.T) {
	each(t, func(t *testing.T, s *trackertest.Server) {
		lose := true
		s.After = func(w http.ResponseWriter, r *http.Request) bool {
			if !lose || r.Method != "POST" {
				return false
			}
			lose = false
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(201)
			w.Write([]byte(`{"number": 1, "id`))
			return true // the connection is cut
		}
		h, _ := opened(t, s, false)
		got := upsert(t, h, testReport(), Opened)
		if len(s.Issues) != 1 || got.Issue == "" || got.Note == "" {
			t.Errorf("%d issues, %+v", len(s.Issues), got)
		}
		lose = true // the answer to a comment
		r := testReport()
		r.Issue, r.Attached = got.Issue, true
		n := len(s.Issues[0].Comments)
		upsert(t, h, r, Commented)
		if len(s.Issues[0].Comments) != n+1 {
			t.Errorf("%d comments were made", len(s.Issues[0].Comments)-n)
		}
	})
}

func TestContractSlowAndHuge(t *testing.T) {
	s := trackertest.New(t, "github")
	release := make(chan bool)
	s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	})
	h, _ := opened(t, s, false)
	h.http.Timeout = 20 * time.Millisecond
	if _, err := h.Upsert(context.Background(), testReport()); kindOf(err) != Down {
		t.Errorf("%v", err)
	}
	close(release)
	s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		part := []byte(strings.Repeat(" ", 1<<20))
		for range mostAnswer>>20 + 1 {
			if _, err := w.Write(part); err != nil {
				break
			}
		}
		return true
	})
	h.http.Timeout = requestTime
	if _, err := h.Upsert(context.Background(), testReport()); kindOf(err) != Refused || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("%v", err)
	}
	s.Answer(func(w http.ResponseWriter, r *http.Request) bool { fmt.Fprint(w, "<html>sign in</html>"); return true })
	if _, err := h.Upsert(context.Background(), testReport()); kindOf(err) != Down {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Upsert(ctx, testReport()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The token is sent to no other host, and a request that changes something is not redirected.
func TestContractRedirects(t *testing.T) {
	visits := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits++ }))
	defer other.Close()
	each := func(method string, target func(s *trackertest.Server) string) error {
		s := trackertest.New(t, "github")
		s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != method || strings.HasPrefix(r.URL.Path, "/moved") {
				return false
			}
			http.Redirect(w, r, target(s), http.StatusMovedPermanently)
			return true
		})
		h, _ := opened(t, s, false)
		_, err := h.Upsert(context.Background(), testReport())
		return err
	}
	if err := each("GET", func(*trackertest.Server) string { return other.URL }); kindOf(err) != Refused || visits != 0 {
		t.Errorf("%v; %d visits", err, visits)
	}
	if err := each("POST", func(s *trackertest.Server) string { return s.URL + "/api/v3/repos/o/r/issues" }); kindOf(err) != Refused {
		t.Errorf("%v", err)
	}
}

// The error mentions a missing token if there is none, and only then.
func TestContractNoToken(t *testing.T) {
	each(t, func(t *testing.T, s *trackertest.Server) {
		for _, status := range []int{401, 403, 404, 400} {
			s.Answer(func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(status); return true })
			for token, want := range map[string]bool{"": status != 400, trackertest.Token: false} {
				tr, err := Open(s.Spec(), Options{Token: Secret{token}, User: s.User()})
				if err != nil {
					t.Fatal(err)
				}
				_, err = tr.Upsert(context.Background(), testReport())
				if err == nil || strings.Contains(err.Error(), TokenVariable) != want {
					t.Errorf("status %d, token %q: %v", status, token, err)
				}
			}
		}
	})
}
