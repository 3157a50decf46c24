package nightly

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"diagnose/corpus"
	"diagnose/replay/record"
	"diagnose/reports/tracker"
)

// hook is a server that gets alerts.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	got    []tracker.Alert
	status int
}

func newHook(t testing.TB) (*hook, *tracker.Webhook) {
	t.Helper()
	h := &hook{status: http.StatusOK}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		var a tracker.Alert
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			t.Error(err)
		}
		if h.status == http.StatusOK {
			h.got = append(h.got, a)
		}
		w.WriteHeader(h.status)
	}))
	t.Cleanup(h.Close)
	t.Setenv(tracker.WebhookVariable, h.URL+"/hook")
	at, err := tracker.WebhookAddress("", "")
	if err != nil {
		t.Fatal(err)
	}
	w, err := tracker.OpenWebhook(at, tracker.WebhookJSON)
	if err != nil {
		t.Fatal(err)
	}
	return h, w
}

// taken returns the alerts that came, each as its event and the number of its causes, sorted, and
// forgets them.
func (h *hook) taken() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for _, a := range h.got {
		list = append(list, string(a.Event))
		if a.More != nil {
			list[len(list)-1] += strings.Repeat("+", a.More.New) + strings.Repeat("-", a.More.Back)
		}
	}
	h.got = nil
	slices.Sort(list)
	return strings.Join(list, " ")
}

// alerted is a night that sends alerts. If told is set, its summary is delivered.
func alerted(t testing.TB, c *corpus.Corpus, w *tracker.Webhook, most int, told bool) *Summary {
	t.Helper()
	s := summary(t, c, night1(t, options(c)))
	if err := s.Alert(t.Context(), c, AlertOptions{Webhook: w, Most: most, Page: "https://failures.example.org/"}); err != nil {
		t.Fatal(err)
	}
	if told {
		if err := s.Told(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Each new cause is told once, also if the night is killed before it delivers its summary; those
// beyond the limit in one alert. A dry run tells nothing.
func TestAlert(t *testing.T) {
	var list []failure
	for _, cause := range []string{"one", "two", "three", "four", "five"} {
		list = append(list, failure{what: "ok", cause: cause, ago: time.Hour})
	}
	c, _ := filled(t, list...)
	h, w := newHook(t)
	dry := summary(t, c, night1(t, options(c)))
	if err := dry.Alert(t.Context(), c, AlertOptions{Webhook: w, Most: 2, DryRun: true}); err != nil || len(dry.Alerting.Alerts) != 2 || dry.Alerting.Summed != 3 || h.taken() != "" {
		t.Errorf("a dry run: %v, %+v", err, dry.Alerting)
	}
	s := alerted(t, c, w, 2, false)
	if first := h.got[0]; first.Cause.Link != "https://failures.example.org/cause/"+first.Cause.Digest || first.ID != "new-"+first.Cause.Digest {
		t.Errorf("%+v", first)
	}
	if got := h.taken(); got != "more+++ new new" || len(s.Alerting.Alerts) != 2 || s.Alerting.Summed != 3 {
		t.Errorf("%s, %+v", got, s.Alerting)
	}
	if alerted(t, c, w, 2, true); h.taken() != "" {
		t.Error("the night after a killed one told it again")
	}
	put(t, c, 9, failure{what: "ok", cause: "six"})
	if alerted(t, c, w, 2, true); h.taken() != "new" {
		t.Error("a later cause was not told")
	}
	if tickets, err := c.Tickets(t.Context()); err != nil || len(tickets) != 0 {
		t.Errorf("alerts are tickets: %v, %v", tickets, err)
	}
}

// What a webhook that is out of order was not told is told by a later night, even if the cause is
// known or quiet by then. A cause that is back is told once for each return.
func TestAlertLater(t *testing.T) {
	c, ids := filled(t, failure{what: "ok", cause: "one", ago: time.Hour}, failure{what: "ok", cause: "two", ago: 23*time.Hour + 59*time.Minute + 58*time.Second})
	h, w := newHook(t)
	h.status = http.StatusForbidden
	if s := alerted(t, c, w, 9, true); s.Alerting.Error == "" || len(s.Alerting.Alerts) != 0 {
		t.Errorf("%+v", s.Alerting)
	}
	h.status = http.StatusBadRequest
	if s := alerted(t, c, w, 9, true); s.Alerting.Error != "" || len(s.Alerting.Alerts) != 2 || s.Alerting.Alerts[0].Error == "" {
		t.Errorf("%+v", s.Alerting)
	}
	time.Sleep(2 * time.Second) // the second cause is quiet now
	h.status = http.StatusOK
	if s := alerted(t, c, w, 9, true); h.taken() != "new new" || len(s.New) != 0 {
		t.Errorf("%+v", s)
	}
	if alerted(t, c, w, 9, true); h.taken() != "" {
		t.Error("told again")
	}
	e, err := c.Find(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Fixed(t.Context(), e.Diagnosis.Cluster(), time.Now().Add(-30*time.Minute), ""); err != nil {
		t.Fatal(err)
	}
	again := built(t, c, failure{what: "ok", cause: "one"}, "00aa")
	if alerted(t, c, w, 9, true); len(h.got) != 1 || h.got[0].Event != tracker.AlertBack || h.got[0].Cause.Back != again {
		t.Errorf("%+v", h.got)
	}
	h.taken()
	if alerted(t, c, w, 9, true); h.taken() != "" {
		t.Error("a return is told twice")
	}
}

// built adds a failure of a build that had not failed before.
func built(t testing.TB, c *corpus.Corpus, x failure, build string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	m := record.Manifest{PID: 4711, Outcome: record.Outcome{Kind: record.OutcomeSignal, Signal: 6}, Times: record.Times{Started: at, Ended: &at},
		Program: record.Program{Path: "/srv/bin/bank", Args: []record.Text{"bank", record.Text(x.what), record.Text(x.cause)}, BuildID: build}}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	a, err := c.Add(t.Context(), dir, corpus.AddOptions{Move: true})
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}
