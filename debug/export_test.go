package debug

import "time"

// LeaveMarksAfter gives up the session's marks, and makes its replays leave others wherever they may, if they have run so long.
func (s *Session) LeaveMarksAfter(d time.Duration) {
	s.marks.close()
	s.marks.after = d
}

// Marks returns the number of marks, and how many replays have begun at one.
func (s *Session) Marks() (marks, used int) { return len(s.marks.list), s.marks.used }

// TellEvery sets how often OnProgress's function is called.
func (s *Session) TellEvery(d time.Duration) { s.way.every = d }
