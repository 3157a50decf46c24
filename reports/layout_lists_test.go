package reports

import (
	"bytes"
	"strings"
	"testing"

	"diagnose/evidence"
)

// Frames of Python and reports of the race detector are in every format that shows stacks.
func TestPythonAndRaces(t *testing.T) {
	c := sample()
	c.Python = []evidence.PythonStack{{Threads: c.Stacks[0].Threads[:1], Frames: []evidence.PythonFrame{{Function: "Reader.next", File: "/srv/read.py", Line: 14}}, Proof: evidence.FromCore}}
	site := []evidence.Site{{Function: "main.tally", File: "/srv/tally.go", Line: 9}}
	c.Races = []evidence.DataRace{{Report: "race.1", Times: 2, Accesses: []evidence.RaceAccess{{Write: true, Addr: 0xc0001, Goroutine: 8, Stack: site}, {Addr: 0xc0001, Stack: site}},
		Created: []evidence.RaceGoroutine{{Goroutine: 8, Stack: site}}, Proof: evidence.Inferred}}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	for _, format := range []Format{Text, Markdown, HTML, JSON} {
		var out bytes.Buffer
		if err := Write(&out, c, Options{Format: format}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Reader.next", "read.py", "main.tally", "tally.go"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %s", format, want)
			}
		}
	}
}
