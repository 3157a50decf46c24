package evidence

// Divergence is a branch on which a failing run's end depends, and which passing runs left by another way. It is a difference
// and no cause: the other way may be right for what passing runs were given.
type Divergence struct {
	// Site is the branch. Caller, if set, is the call from which its function was entered: only such calls are compared, as from other
	// places passing runs go the same way.
	Site   *Site `json:"site"`
	Caller *Site `json:"caller,omitempty"`
	// Tested are the values that the branch compared in the failing run, and Passing those that it compared in passing runs, few of
	// them; empty: they are not known.
	Tested  []string   `json:"tested,omitempty"`
	Passing [][]string `json:"passing_tested,omitempty"`
	// FailingRuns of FailingOf runs left the branch by the way of the first failing run, and PassingRuns of PassingOf, of which
	// Reached reached the branch. Score is in [0, 1]: the mean of the share of failing runs that went that way and the share of
	// passing runs that did not.
	FailingRuns int     `json:"failing_runs"`
	FailingOf   int     `json:"failing_of"`
	PassingRuns int     `json:"passing_runs"`
	PassingOf   int     `json:"passing_of"`
	Reached     int     `json:"passing_reached"`
	Score       float64 `json:"score"`
	// Origin says where the tested values came from in the failing run, the oldest first.
	Origin []CauseStep `json:"origin,omitempty"`
	// Text is one sentence without a final stop.
	Text  string `json:"text"`
	Proof Proof  `json:"proof"`
}
