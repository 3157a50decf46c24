package page

import (
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// The counts are those of the corpus, in a text that Prometheus' parser takes.
func TestMetrics(t *testing.T) {
	s := served(t, week(t), "")
	w := ask(s, "GET", "/metrics", nil, nil)
	text := w.Body.String()
	if kind := w.Header().Get("Content-Type"); w.Code != 200 || !strings.HasPrefix(kind, "application/openmetrics-text; version=1.0.0") || !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("status %d, %s: %s", w.Code, kind, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	value := func(name string, labels ...string) float64 {
		t.Helper()
		for _, m := range families[name].GetMetric() {
			fits := 0
			for i := 0; i < len(labels); i += 2 {
				for _, l := range m.GetLabel() {
					if l.GetName() == labels[i] && l.GetValue() == labels[i+1] {
						fits++
					}
				}
			}
			if 2*fits == len(labels) {
				return m.GetGauge().GetValue()
			}
		}
		t.Errorf("no %s with %v in %s", name, labels, text)
		return -1
	}
	for want, got := range map[float64]float64{
		30: value("diagnose_failures", "program", "server", "outcome", "SIGSEGV"), 8: value("diagnose_failures", "program", "tests", "outcome", "exit-1"),
		32: value("diagnose_passed_runs"), 4: value("diagnose_causes", "state", "new"), 0: value("diagnose_causes", "state", "back"), 1: value("diagnose_pending"),
		3 * 3600: value("diagnose_oldest_pending_age_seconds"), float64(now.Add(-3600e9).Unix()): value("diagnose_last_failure_timestamp_seconds"),
	} {
		if got != want {
			t.Errorf("%v, want %v: %s", got, want, text)
		}
	}
}

// A corpus of many programs has a bounded number of series.
func TestManyPrograms(t *testing.T) {
	var list []planted
	for i := range 3 * mostPrograms {
		list = append(list, planted{program: digest(i), ended: "SIGSEGV", at: now})
	}
	text := ask(served(t, plant(t, list), ""), "GET", "/metrics", nil, nil).Body.String()
	if n := strings.Count(text, "diagnose_failures{"); n != mostPrograms+1 || !strings.Contains(text, `program="(other)",outcome="SIGSEGV"} 200`) {
		t.Errorf("%d series: %s", n, text)
	}
}
