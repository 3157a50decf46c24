package spool

import (
	"cmp"
	"slices"
	"time"
)

// Status is what a spool has and counted.
type Status struct {
	Entries []Entry
	// CoreBytes and ObjectBytes are the sizes of the cores and of the objects.
	CoreBytes, ObjectBytes int64
	// Kept counts the cores that were kept, Refused those that were not.
	Kept    uint64
	Refused map[Refusal]uint64
	// Programs are in the order of their last crash, the newest first.
	Programs []Program
}

// Program counts the crashes of one executable.
type Program struct {
	Name    string
	Kept    uint64
	Refused map[Refusal]uint64
	Last    time.Time
}

// Status returns what the spool has.
func (s *Spool) Status() (*Status, error) {
	status := new(Status)
	err := s.locked(func() (err error) {
		st := s.read()
		status.Kept, status.Refused = st.Kept, st.Refused
		for _, p := range st.Programs {
			status.Programs = append(status.Programs, Program{p.Name, p.Kept, p.Refused, p.Last})
		}
		if status.Entries, err = s.Entries(); err != nil {
			return err
		}
		status.ObjectBytes, err = s.objectBytes()
		return err
	})
	slices.SortFunc(status.Programs, func(a, b Program) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name)) })
	for _, e := range status.Entries {
		status.CoreBytes += e.Bytes
	}
	return status, err
}

// Crashes returns how many crashes of an entry's kind were counted; 0: they cannot be compared.
func (s *Spool) Crashes(e Entry) (count uint64, err error) {
	err = s.locked(func() error {
		for signature, v := range s.read().Signatures {
			if short := signature[:min(len(signature), kindLength)]; short == e.kind.Signature {
				count += v.Count
			}
		}
		return nil
	})
	return count, err
}
