package driver

import (
	"fmt"

	"diagnose/diagnosis/racereport"
	"diagnose/evidence"
)

// dataRaces attaches the reports of Go's race detector that the user names.
func (a *analysis) dataRaces() error {
	for _, path := range a.req.RaceReports {
		r, err := racereport.ReadFile(path)
		if err != nil {
			return &InputError{fmt.Errorf("report of the race detector: %w", err)}
		}
		a.result.Races = append(a.result.Races, r.Races...)
		a.limitRaces(path, r.Cut, "reports end before the second access")
		a.limitRaces(path, r.More, "further races are left out")
	}
	return nil
}

// limitRaces tells what a report of the race detector lacks, if there is any.
func (a *analysis) limitRaces(path string, count int, what string) {
	if count > 0 {
		a.result.Limits = append(a.result.Limits, evidence.Limit{Code: evidence.LimitRaceReport, Subject: path, Reason: fmt.Sprintf("%d %s", count, what)}.Worded())
	}
}
