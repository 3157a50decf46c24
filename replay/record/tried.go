package record

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"diagnose/replay/record/eventlog"
)

// TriedPlan is a list of preemptions that a search tried, and how far a replay with them came.
type TriedPlan struct {
	// Hash is the hash of the list, as computed by the search.
	Hash uint64
	// Events is how many events were done. Thread diverged after its event Ordinal.
	Events, Ordinal uint64
	Thread          uint32
}

// TriedPlans are stored as base64 of, for each, the hash as 8 bytes (little-endian) and the
// other three numbers as unsigned LEB128.
type TriedPlans []TriedPlan

// MostTried is the maximum number of plans in a file.
const MostTried = 1 << 14

// MarshalJSON implements json.Marshaler.
func (l TriedPlans) MarshalJSON() ([]byte, error) {
	var b []byte
	for _, p := range l {
		b = binary.LittleEndian.AppendUint64(b, p.Hash)
		b = binary.AppendUvarint(b, p.Events)
		b = binary.AppendUvarint(b, uint64(p.Thread))
		b = binary.AppendUvarint(b, p.Ordinal)
	}
	return json.Marshal(base64.StdEncoding.EncodeToString(b))
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *TriedPlans) UnmarshalJSON(text []byte) error {
	var coded string
	if err := json.Unmarshal(text, &coded); err != nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return fmt.Errorf("the plans that were tried: %w", err)
	}
	*l = nil
	for len(b) > 0 {
		if len(*l) == MostTried {
			return fmt.Errorf("more than %d plans that were tried", MostTried)
		}
		if len(b) < 8 {
			return errors.New("a plan that was tried is cut off")
		}
		p := TriedPlan{Hash: binary.LittleEndian.Uint64(b)}
		b = b[8:]
		var thread uint64
		for _, to := range []*uint64{&p.Events, &thread, &p.Ordinal} {
			n := 0
			if *to, n = binary.Uvarint(b); n <= 0 {
				return errors.New("a plan that was tried is cut off")
			}
			b = b[n:]
		}
		if thread >= eventlog.MostThreads {
			return fmt.Errorf("thread %d of a plan that was tried", thread)
		}
		p.Thread = uint32(thread)
		*l = append(*l, p)
	}
	return nil
}
