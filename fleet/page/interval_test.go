package page

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// at is a moment of a test, in minutes.
func at(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }

// The interval is between the last build without a failure and the first with one; the probability
// of luck is that of the runs after the first failure.
func TestInterval(t *testing.T) {
	for name, x := range map[string]struct {
		all       []runs
		good, bad string
		luck      float64 // below 0: not known
	}{
		"always":         {[]runs{single("a", at(0), true), single("b", at(1), true)}, "", "a", -1},
		"one failure":    {[]runs{single("a", at(0), false), single("b", at(1), true)}, "a", "b", -1},
		"never again":    {[]runs{single("a", at(0), false), single("b", at(1), true), single("b", at(2), false)}, "a", "b", -1},
		"half":           {[]runs{{"a", at(0), 0, 10}, {"b", at(1), 3, 2}}, "a", "b", math.Pow(0.5, 10)},      // 2 of 4 others
		"all":            {[]runs{{"a", at(0), 0, 3}, {"b", at(1), 9, 0}}, "a", "b", math.Pow(1-9.0/10, 3)},   // 8 of 8 others
		"rare":           {[]runs{{"a", at(0), 0, 5}, {"b", at(1), 2, 99}}, "a", "b", math.Pow(1-1.0/100, 5)}, // 1 of 100 others
		"between":        {[]runs{single("a", at(0), false), single("b", at(1), false), single("c", at(2), true)}, "b", "c", -1},
		"late rerun":     {[]runs{single("a", at(9), false), single("a", at(0), false), single("b", at(1), true)}, "a", "b", -1},
		"unsorted times": {[]runs{single("b", at(5), true), single("a", at(1), false)}, "a", "b", -1},
	} {
		_, v := bisect(x.all)
		good := ""
		if v.Good != nil {
			good = v.Good.Name
		}
		if good != x.good || v.Bad == nil || v.Bad.Name != x.bad || v.LuckKnown != (x.luck >= 0) || v.LuckKnown && math.Abs(v.Luck-x.luck) > 1e-9 {
			t.Errorf("%s: after %q, with %+v, luck %v %v", name, good, v.Bad, v.Luck, v.LuckKnown)
		}
	}
}

// Entries of a job stand for all its runs, once; labels that are no numbers stand for one run.
func TestJobs(t *testing.T) {
	var list []planted
	add := func(commit, job, runs, failed string, passed bool, minutes int) {
		labels := map[string]string{"test": "TestA", "commit": commit, "job": job}
		if runs != "" {
			labels["runs"], labels["failed"] = runs, failed
		}
		list = append(list, planted{program: "tests", ended: "exit-1", passed: passed, at: at(minutes), labels: labels})
	}
	add("good", "1", "50", "0", true, 0)
	add("bad", "2", "50", "5", false, 10)
	add("bad", "2", "50", "5", true, 11)
	add("bad", "3", "-1", "5", false, 12)
	add("bad", "4", "2", "3", false, 13)
	add("bad", "5", "99999999999999999999", "0", false, 14)
	add("bad", "6", "", "", true, 15)
	status, text := get(t, served(t, plant(t, list), ""), "/test?name=TestA")
	for _, want := range []string{"8 of 104</strong>", "0 of 50 runs", "8 of 54 runs", "0 % of 50 runs", "14.8 % of 54 runs", "Flaky"} {
		if status != 200 || !strings.Contains(text, want) {
			t.Errorf("status %d, without %q", status, want)
		}
	}
}

// A test that never failed is not listed, and one that always did is not called flaky.
func TestNotFlaky(t *testing.T) {
	var list []planted
	for i := range 6 {
		list = append(list, planted{program: "tests", ended: "passed", passed: true, at: at(i), labels: map[string]string{"test": "TestGood", "commit": fmt.Sprint(i)}},
			planted{program: "tests", ended: "exit-1", at: at(i), labels: map[string]string{"test": "TestBad", "commit": fmt.Sprint(i)}})
	}
	_, text := get(t, served(t, plant(t, list), ""), "/tests")
	if strings.Contains(text, "TestGood") || !strings.Contains(text, "TestBad") || strings.Contains(text, "flaky") {
		t.Error(text[strings.Index(text, "<main"):])
	}
}
