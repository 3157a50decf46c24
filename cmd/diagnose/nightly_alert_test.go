package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/reports/tracker"
)

// A night tells a webhook of a new cause once, and prints its address nowhere: neither from the
// environment nor from a file. Wrong flags are refused before the night.
func TestNightlyWebhook(t *testing.T) {
	var got []tracker.Alert
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var a tracker.Alert
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil || r.URL.Path != "/s3cretPart" {
			t.Errorf("%s: %v", r.URL, err)
		}
		got = append(got, a)
	}))
	defer hook.Close()
	n := newNights(t, "none", "")
	at := hook.URL + "/s3cretPart"
	night := func(environ []string, args ...string) outcome {
		t.Helper()
		o := diagnoseWith(t, environ, append([]string{"nightly", "--corpus", n.dir}, args...)...)
		if strings.Contains(o.stdout+o.stderr, "s3cret") {
			t.Errorf("the address is shown: %+v", o)
		}
		return o
	}
	environ := []string{tracker.WebhookVariable + "=" + at}
	if o := night(environ, "--dry-run"); o.status != exitNewCause || len(got) != 0 || !strings.Contains(o.stdout, "What would be sent to webhook:127.0.0.1") {
		t.Errorf("%+v", o)
	}
	o := night(environ, "--page-url", "https://failures.example.org")
	if o.status != exitNewCause || len(got) != 1 || got[0].Event != tracker.AlertNew || got[0].Cause.Program == "" || !strings.HasPrefix(got[0].Cause.Link, "https://failures.example.org/cause/") {
		t.Errorf("%+v, %+v", o, got)
	}
	file := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(file, []byte(at+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := night(nil, "--webhook-url-file", file); o.status != exitOK || len(got) != 1 || !strings.Contains(o.stdout, "nothing new") {
		t.Errorf("%+v, %+v", o, got)
	}
	for _, args := range [][]string{{"--webhook", "http://hooks.example.org/s3cret"}, {"--webhook", "s3cret"}, {"--webhook-format", "yaml", "--webhook", at}, {"--webhook-most", "-1"},
		{"--page-url", "failures.example.org"}, {"--webhook", at, "--webhook-url-file", file}, {"--dry-run"}} {
		if o := night(nil, args...); o.status != exitUsage {
			t.Errorf("%q: %+v", args, o)
		}
	}
}
