package page

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"diagnose/reports"
)

// mostPrograms bounds the programs that have counts of their own, the most frequent ones. The
// others are counted together, as otherProgram.
const (
	mostPrograms = 100
	otherProgram = "(other)"
)

// metrics writes the counts in OpenMetrics' text format (OpenMetrics 1.0).
func (s *Server) metrics(q *request) error {
	st, err := q.state()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, f := range s.families(st) {
		if _, err := expfmt.MetricFamilyToOpenMetrics(&b, f); err != nil {
			return fmt.Errorf("page: metrics: %w", err)
		}
	}
	if _, err := expfmt.FinalizeOpenMetrics(&b); err != nil {
		return fmt.Errorf("page: metrics: %w", err)
	}
	q.w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeOpenMetrics)))
	q.w.WriteHeader(http.StatusOK)
	q.w.Write(b.Bytes()) // an error is the reader's connection
	return nil
}

// sample is one value of a metric.
type sample struct {
	labels []label
	value  float64
}

func gauge(name, help string, list ...sample) *dto.MetricFamily {
	f := &dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum()}
	for _, x := range list {
		m := &dto.Metric{Gauge: &dto.Gauge{Value: &x.value}}
		for _, l := range x.labels {
			m.Label = append(m.Label, &dto.LabelPair{Name: &l.Key, Value: &l.Value})
		}
		f.Metric = append(f.Metric, m)
	}
	return f
}

// families are the metrics. All are gauges: a corpus may lose entries.
func (s *Server) families(st *state) []*dto.MetricFamily {
	now := s.keep.now()
	type key struct{ program, outcome string }
	counts, programs := map[key]int{}, map[string]int{}
	d := s.opts.Redact.Redactor()
	names := map[string]string{}
	pending, undiagnosed, passed := 0, 0, 0
	var oldest, newest time.Time
	for i := range st.entries {
		e := &st.entries[i]
		if e.Passed {
			passed++
			continue
		}
		name, ok := names[e.Name()]
		if !ok {
			name = reports.Span(d.Text(e.Name()))
			names[e.Name()] = name
		}
		counts[key{name, reports.Span(cmp.Or(e.Ended, "unknown"))}]++
		programs[name]++
		if e.FailedAt.After(newest) {
			newest = e.FailedAt
		}
		switch {
		case e.Diagnosis == nil:
			pending++
			if oldest.IsZero() || e.AddedAt.Before(oldest) {
				oldest = e.AddedAt
			}
		case !e.Diagnosis.Diagnosed:
			undiagnosed++
		}
	}
	top := sortedKeys(programs)
	slices.SortStableFunc(top, func(a, b string) int { return programs[b] - programs[a] })
	others := map[string]bool{}
	for i, name := range top {
		others[name] = i >= mostPrograms
	}
	summed := map[key]int{}
	for k, n := range counts {
		if others[k.program] {
			k.program = otherProgram
		}
		summed[k] += n
	}
	var failures []sample
	for k, n := range summed {
		failures = append(failures, sample{[]label{{"program", k.program}, {"outcome", k.outcome}}, float64(n)})
	}
	slices.SortFunc(failures, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.labels[0].Value, b.labels[0].Value), cmp.Compare(a.labels[1].Value, b.labels[1].Value))
	})
	list := []*dto.MetricFamily{
		gauge("diagnose_failures", "Failures in the corpus, by program and how they ended.", failures...),
		gauge("diagnose_passed_runs", "Recorded runs in the corpus that did not fail.", sample{nil, float64(passed)}),
		gauge("diagnose_causes", "Causes in the corpus, by how they stand to the summaries of the last day.", s.standings(st, now)...),
		gauge("diagnose_pending", "Failures without a diagnosis.", sample{nil, float64(pending)}),
		gauge("diagnose_undiagnosed", "Failures that could not be diagnosed.", sample{nil, float64(undiagnosed)}),
		gauge("diagnose_suppressed", "Failures that a suppression hides.", sample{nil, float64(st.hidden)}),
	}
	if !oldest.IsZero() {
		list = append(list, gauge("diagnose_oldest_pending_age_seconds", "How long the failure that waits longest for a diagnosis is in the corpus.", sample{nil, max(0, now.Sub(oldest).Seconds())}))
	}
	if !newest.IsZero() {
		list = append(list, gauge("diagnose_last_failure_timestamp_seconds", "When the newest failure happened, in seconds since 1970.", sample{nil, float64(newest.Unix())}))
	}
	return list
}

func (s *Server) standings(st *state, now time.Time) []sample {
	counts := map[standing]int{}
	for i := range st.causes {
		counts[st.causes[i].stands(now.Add(-periods[0].length))]++
	}
	var list []sample
	for _, x := range []standing{standsNew, standsBack, standsKnown, standsFixed, standsQuiet} {
		list = append(list, sample{[]label{{"state", string(x)}}, float64(counts[x])})
	}
	return list
}
