package tracker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hookPath is the secret part of an address.
const hookPath = "/services/T000/B000/s3cretPart?sig=0therSecret"

// hooked is a webhook of a server. Waits are counted and not carried out.
func hooked(t *testing.T, format WebhookFormat, answer http.HandlerFunc) (*Webhook, *[]time.Duration) {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	w, err := OpenWebhook(Secret{s.URL + hookPath}, format)
	if err != nil {
		t.Fatal(err)
	}
	var waits []time.Duration
	w.client.sleep = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}
	return w, &waits
}

func testAlert() *Alert {
	at := time.Date(2026, 3, 1, 2, 30, 0, 0, time.UTC)
	return &Alert{ID: "new-" + testDigest, Event: AlertNew, At: at, Cause: &AlertCause{Digest: testDigest, Kind: "heap-overflow", Proof: "proved", Program: "server<!channel>",
		Summary: "copy_name writes `x` & <https://evil.example|here> @channel" + strings.Repeat("y", 4000), Count: 3, Recent: 2, First: at, Last: at, Example: "ab12", Link: "https://failures.example.org/cause/" + testDigest}}
}

// An alert arrives once, as JSON, with its id.
func TestWebhookJSON(t *testing.T) {
	var got []Alert
	w, waits := hooked(t, WebhookJSON, func(_ http.ResponseWriter, r *http.Request) {
		var a Alert
		text, err := io.ReadAll(r.Body)
		if err := errors.Join(err, json.Unmarshal(text, &a)); err != nil || r.Method != http.MethodPost || r.URL.RequestURI() != hookPath || r.Header.Get("Idempotency-Key") != a.ID || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v: %s %s %v: %s", err, r.Method, r.URL, r.Header, text)
		}
		got = append(got, a)
	})
	if err := w.Send(t.Context(), testAlert()); err != nil || len(*waits) != 0 {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].SchemaVersion != AlertVersion || got[0].Cause.Kind != "heap-overflow" || len(got[0].Cause.Summary) > mostAlertText+3 {
		t.Errorf("%+v", got)
	}
}

// What a program wrote is no markup, causes no mention and fits Slack's lengths.
func TestWebhookSlack(t *testing.T) {
	var text string
	w, _ := hooked(t, WebhookSlack, func(_ http.ResponseWriter, r *http.Request) {
		all, _ := io.ReadAll(r.Body)
		text = string(all)
	})
	rest := AlertRest{New: 30, Back: 1}
	for range MostAlertCauses {
		rest.Causes = append(rest.Causes, *testAlert().Cause)
	}
	for _, a := range []*Alert{testAlert(), {ID: "more", Event: AlertMore, More: &rest}} {
		if err := w.Send(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		var m slackMessage
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(m.Text, "<>") || strings.Contains(m.Text, "@channel") || strings.Count(m.Text, "`")%2 != 0 || m.Text == "" {
			t.Errorf("the text is markup: %s", m.Text)
		}
		for _, b := range m.Blocks {
			if b.Text != nil && (b.Text.Text == "" || b.Type == "header" && len(b.Text.Text) > slackHeader || len(b.Text.Text) > slackSection) {
				t.Errorf("%+v", b.Text)
			}
			if b.Text != nil && b.Text.Type != "plain_text" && !strings.HasPrefix(b.Text.Text, "<https://failures.example.org/cause/") {
				t.Errorf("markup: %+v", b.Text)
			}
		}
	}
}

// The client waits as long as the webhook says, tries again what may not have arrived, gives up after
// five tries, and shows the address in no error.
func TestWebhookErrors(t *testing.T) {
	for name, x := range map[string]struct {
		fail   func(http.ResponseWriter, *http.Request, int) bool // reports whether it answered
		tries  int
		kind   Kind
		waited time.Duration
	}{
		"too many, then not": {func(w http.ResponseWriter, _ *http.Request, n int) bool {
			if n > 1 {
				return false
			}
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
			return true
		}, 2, "", 6 * time.Second},
		"out of order, then not": {func(w http.ResponseWriter, _ *http.Request, n int) bool {
			if n > 2 {
				return false
			}
			w.WriteHeader(500)
			return true
		}, 3, "", time.Second},
		"out of order": {func(w http.ResponseWriter, r *http.Request, _ int) bool {
			w.WriteHeader(502)
			io.WriteString(w, "no route to "+r.URL.RequestURI()+" "+r.URL.Path)
			return true
		}, 5, Down, time.Second},
		"no answer": {func(_ http.ResponseWriter, r *http.Request, _ int) bool {
			<-r.Context().Done()
			return true
		}, 5, Down, time.Second},
		"cut off": {func(w http.ResponseWriter, _ *http.Request, n int) bool {
			if n > 1 {
				return false
			}
			panic(http.ErrAbortHandler)
		}, 2, "", 0},
		"refused": {func(w http.ResponseWriter, r *http.Request, _ int) bool {
			w.WriteHeader(400)
			io.WriteString(w, "invalid_payload\x1b[2J at "+r.URL.RequestURI())
			return true
		}, 1, Refused, 0},
		"gone": {func(w http.ResponseWriter, r *http.Request, _ int) bool {
			w.WriteHeader(404)
			io.WriteString(w, "no_service "+r.URL.Path+" "+r.URL.RawQuery)
			return true
		}, 1, Missing, 0},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request, _ int) bool {
			http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusTemporaryRedirect)
			return true
		}, 1, Refused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			w, waits := hooked(t, WebhookJSON, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				tries++
				x.fail(w, r, tries)
			})
			w.client.http.Timeout = 300 * time.Millisecond
			err := w.Send(t.Context(), testAlert())
			if kindOf(err) != x.kind || (err == nil) != (x.kind == "") || tries != x.tries {
				t.Errorf("%v after %d tries, want %q after %d", err, tries, x.kind, x.tries)
			}
			var waited time.Duration
			for _, d := range *waits {
				waited += d
			}
			if waited < x.waited {
				t.Errorf("it waited %v", *waits)
			}
			if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "0therSecret") || strings.ContainsRune(err.Error(), 0x1b)) {
				t.Errorf("the error shows the address: %v", err)
			}
		})
	}
}

// An address is taken from one place, is removed from the environment, and is in no error and no name.
func TestWebhookAddress(t *testing.T) {
	const at = "https://hooks.example.org" + hookPath
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte(at+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(WebhookVariable, at)
	s, err := WebhookAddress("", "")
	if _, set := os.LookupEnv(WebhookVariable); err != nil || s.text != at || set {
		t.Errorf("%v, %v", err, set)
	}
	for _, x := range [][2]string{{at, ""}, {"", file}} {
		if s, err := WebhookAddress(x[0], x[1]); err != nil || s.text != at {
			t.Errorf("%q: %v", x, err)
		}
	}
	if _, err := WebhookAddress(at, file); err == nil {
		t.Error("two addresses are taken")
	}
	if w, err := OpenWebhook(s, WebhookSlack); err != nil || strings.Contains(w.Name(), "s3cret") || !strings.HasPrefix(w.Name(), "webhook:hooks.example.org#") {
		t.Errorf("%v", err)
	}
	for _, wrong := range []string{"http://hooks.example.org/s3cret", "https://s3cret@hooks.example.org", "ftp://hooks.example.org/s3cret", "s3cret", "https:///s3cret", "https://hooks.example.org/#s3cret"} {
		if _, err := OpenWebhook(Secret{wrong}, WebhookJSON); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if _, err := OpenWebhook(s, "yaml"); err == nil {
		t.Error("another form is taken")
	}
}
