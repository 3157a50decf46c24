package tracker

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"diagnose/reports/tracker/trackertest"
)

// Servers and data centers of Jira have no /search/jql, and tokens without an account.
func TestContractJiraServer(t *testing.T) {
	s := trackertest.New(t, "jira")
	s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "Bearer "+trackertest.Token {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		r.Header.Set("Authorization", "Basic bWVAZXhhbXBsZS5vcmc6dG9rLTRmOWErc2VjcmV0Lzc=")
		switch strings.TrimPrefix(r.URL.Path, "/rest/api/2") {
		case "/search/jql":
			w.WriteHeader(404)
			return true
		case "/search":
			r.URL.Path += "/jql"
		}
		return false
	})
	tr, err := Open(s.Spec(), Options{Token: Secret{trackertest.Token}})
	if err != nil {
		t.Fatal(err)
	}
	tr.(*hosted).sleep = func(context.Context, time.Duration) error { return nil }
	upsert(t, tr, testReport(), Opened)
	upsert(t, tr, testReport(), Commented)
}
