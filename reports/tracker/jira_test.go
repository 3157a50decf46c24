package tracker

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Servers and data centers of Jira have no /search/jql, and tokens without an account.
func TestContractJiraServer(t *testing.T) {
	s := newFake(t, "jira")
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "Bearer "+testToken {
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
	tr, err := Open(s.spec(), Options{Token: Secret{testToken}})
	if err != nil {
		t.Fatal(err)
	}
	tr.(*hosted).sleep = func(context.Context, time.Duration) error { return nil }
	upsert(t, tr, testReport(), Opened)
	upsert(t, tr, testReport(), Commented)
}
