package probe_test

import (
	"fmt"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/probe"
	"diagnose/replay/record"
)

// TestWrites: a row for each write, with the values before and after, and with those of expressions right after it.
func TestWrites(t *testing.T) {
	crashtest.TracesAccesses(t)
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		log, err := probe.Ask(t.Context(), rec, &probe.Question{Writes: []string{"pushed"}, Print: []string{"pushed", "popped <= pushed", "nothing"}, Most: 50})
		if err != nil {
			t.Fatal(err)
		}
		if len(log.Rows) != 50 || !log.Cut {
			t.Fatalf("%d rows, cut %v", len(log.Rows), log.Cut)
		}
		for i := range log.Rows {
			row := &log.Rows[i]
			if text(row, probe.Old) != fmt.Sprint(i) || text(row, probe.New) != fmt.Sprint(i+1) || text(row, "pushed") != fmt.Sprint(i+1) ||
				text(row, "popped <= pushed") != "1" || row.Site.Function != "push" || text(row, "nothing") != "<there is no variable nothing>" {
				t.Errorf("row %d: %+v", i, row)
			}
		}
		at := log.Rows[9].Moment
		log, err = probe.Ask(t.Context(), rec, &probe.Question{Writes: []string{"pushed"}, Print: []string{"pushed"}, If: "pushed % 10 == 0", Thread: 2, Most: 5})
		if err != nil {
			t.Fatal(err)
		}
		for i := range log.Rows {
			if n := number(t, &log.Rows[i], "pushed"); int(n)%10 != 0 || log.Rows[i].Moment.Thread != 2 {
				t.Errorf("%v of thread %d", n, log.Rows[i].Moment.Thread)
			}
		}
		if at.PC == 0 {
			return
		}
		log, err = probe.Ask(t.Context(), rec, &probe.Question{Writes: []string{"pushed"}, Until: &at})
		if err != nil || len(log.Rows) != 9 {
			t.Errorf("%d rows until the tenth, %v", len(log.Rows), err)
		}
	})
}
