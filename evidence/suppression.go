package evidence

// Suppression says that a team knows the failure, and does not want to hear of it for now.
type Suppression struct {
	// Reason is the team's, Until the last day on which it is suppressed: 2027-03-01.
	Reason string `json:"reason"`
	Until  string `json:"until"`
	// Entry counts the entries of the file of suppressions, from 1.
	Entry int `json:"entry"`
	// Expired says that the last day is over: the failure is not suppressed any more.
	Expired bool `json:"expired,omitempty"`
}
