package spool

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/internal/privatefile"
)

const (
	// mostPrograms and mostSignatures bound the state; the ones that crashed least recently are dropped.
	mostPrograms, mostSignatures = 512, 2048
	// mostState bounds the file, in bytes.
	mostState = 4 << 20
	// pendingTime is how long a core that was admitted may take to have a directory in incoming.
	pendingTime = 5 * time.Second
)

// Refusal is why a core was not kept.
type Refusal string

// The refusals.
const (
	// Same: one that looks like it was kept within the window, or is being written.
	Same Refusal = "same"
	// ProgramRate and TotalRate: the program, or all, had as many in the last hour as allowed.
	ProgramRate Refusal = "program-rate"
	TotalRate   Refusal = "total-rate"
	// Busy: as many as allowed are being written.
	Busy Refusal = "busy"
	// Full: the disk, or the spool, has no room.
	Full Refusal = "full"
	// Failed: it could not be written; the log says why.
	Failed Refusal = "failed"
)

// Kind is what limits are counted by. Both are digests.
type Kind struct {
	// Program is equal for crashes of one executable.
	Program string
	// Signature is equal for crashes that look alike; "" for one that cannot be compared.
	Signature string
}

// state is the content of state.json.
type state struct {
	Total      bucket                     `json:"total"`
	Programs   map[string]*programState   `json:"programs"`
	Signatures map[string]*signatureState `json:"signatures"`
	Refused    map[Refusal]uint64         `json:"refused"`
	Kept       uint64                     `json:"kept"`
}

type programState struct {
	Name    string             `json:"name"`
	Bucket  bucket             `json:"bucket"`
	Kept    uint64             `json:"kept"`
	Refused map[Refusal]uint64 `json:"refused"`
	Last    time.Time          `json:"last"`
}

type signatureState struct {
	// Count is how many crashes there were, those that were kept among them.
	Count uint64    `json:"count"`
	Kept  time.Time `json:"kept"`
	// Pending is when the writing of a core began that has not ended; zero: none is being written.
	Pending time.Time `json:"pending"`
	Last    time.Time `json:"last"`
}

// bucket holds tokens: one for each core that may be kept now. It fills to an hour's rate in an hour.
type bucket struct {
	Tokens float64   `json:"tokens"`
	At     time.Time `json:"at"`
}

// fill adds the tokens of the time since; a clock that was set back adds none.
func (b *bucket) fill(rate int, now time.Time) {
	if b.At.IsZero() {
		b.Tokens = float64(rate)
	} else if d := now.Sub(b.At); d > 0 {
		b.Tokens += d.Hours() * float64(rate)
	}
	b.Tokens, b.At = min(b.Tokens, float64(rate)), now
}

// read returns the state; one that cannot be read begins again, because cores matter more than
// counters.
func (s *Spool) read() *state {
	st := new(state)
	if f, err := os.Open(s.path(stateName)); err == nil {
		defer f.Close()
		if text, err := io.ReadAll(io.LimitReader(f, mostState)); err != nil || json.Unmarshal(text, st) != nil {
			st = new(state)
		}
	}
	if st.Programs == nil {
		st.Programs = map[string]*programState{}
	}
	if st.Signatures == nil {
		st.Signatures = map[string]*signatureState{}
	}
	if st.Refused == nil {
		st.Refused = map[Refusal]uint64{}
	}
	for k, p := range st.Programs {
		if p == nil {
			delete(st.Programs, k)
		} else if p.Refused == nil {
			p.Refused = map[Refusal]uint64{}
		}
	}
	for k, v := range st.Signatures {
		if v == nil {
			delete(st.Signatures, k)
		}
	}
	return st
}

// change changes the state. It is not flushed to the disk: after a power failure counters may be old.
func (s *Spool) change(f func(*state) error) error {
	return s.locked(func() error {
		st := s.read()
		result := f(st)
		st.trim()
		text, err := json.Marshal(st)
		if err != nil {
			return errors.Join(result, err)
		}
		return errors.Join(result, privatefile.Write(s.path(stateName), text))
	})
}

func (st *state) trim() {
	trim(st.Programs, mostPrograms, func(p *programState) time.Time { return p.Last })
	trim(st.Signatures, mostSignatures, func(v *signatureState) time.Time { return v.Last })
}

// trim drops the oldest entries.
func trim[T any](m map[string]*T, most int, last func(*T) time.Time) {
	for len(m) > most {
		oldest := ""
		for k, v := range m {
			if oldest == "" || last(v).Before(last(m[oldest])) {
				oldest = k
			}
		}
		delete(m, oldest)
	}
}

// program returns the state of a program that crashed now.
func (st *state) program(k Kind, name string, now time.Time) *programState {
	const longest = 256
	p := st.Programs[k.Program]
	if p == nil {
		p = &programState{Name: name[:min(len(name), longest)], Refused: map[Refusal]uint64{}}
		st.Programs[k.Program] = p
	}
	p.Last = now
	return p
}

// Admit decides whether a core is kept; if so, Commit or Refuse must follow. name is the program's, for
// people.
func (s *Spool) Admit(k Kind, name string, now time.Time) (refusal Refusal, err error) {
	free, err := s.free()
	if err != nil {
		return "", err
	}
	err = s.change(func(st *state) error {
		p := st.program(k, name, now)
		v := st.Signatures[k.Signature]
		p.Bucket.fill(s.Limits.ProgramRate, now)
		st.Total.fill(s.Limits.TotalRate, now)
		switch {
		case v != nil && (within(now, v.Kept, s.Limits.Window) || s.writes(k, v, now)):
			refusal = Same
		case free < s.Limits.FreeBytes:
			refusal = Full
		case p.Bucket.Tokens < 1:
			refusal = ProgramRate
		case st.Total.Tokens < 1:
			refusal = TotalRate
		}
		if v != nil {
			v.Count++
			v.Last = now
		}
		if refusal != "" {
			p.Refused[refusal]++
			st.Refused[refusal]++
			return nil
		}
		p.Bucket.Tokens--
		st.Total.Tokens--
		if v == nil && k.Signature != "" {
			v = &signatureState{Count: 1, Last: now}
			st.Signatures[k.Signature] = v
		}
		if v != nil {
			v.Pending = now
		}
		return nil
	})
	return refusal, err
}

// writes reports whether a core of a kind is being written: its writer has locked its directory. One
// that was killed has not.
func (s *Spool) writes(k Kind, v *signatureState, now time.Time) bool {
	if v.Pending.IsZero() || within(now, v.Pending, pendingTime) {
		return !v.Pending.IsZero()
	}
	names, err := os.ReadDir(s.path(incomingName))
	if err != nil {
		return false
	}
	for _, n := range names {
		if of, ok := kindOf(n.Name()); !ok || !strings.HasPrefix(k.Signature, of.Signature) {
			continue
		}
		f, err := os.Open(s.path(incomingName, n.Name()))
		if err != nil {
			continue // it was renamed or removed
		}
		free := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
		f.Close()
		if !free {
			return true
		}
	}
	return false
}

// within reports whether a time is less than a duration ago.
func within(now, then time.Time, d time.Duration) bool {
	return !then.IsZero() && now.Sub(then) < d && now.Sub(then) > -d
}

// Refuse counts a core that was not kept, for another reason than Admit's, or after Admit allowed
// it. A core of its kind may then be kept at once.
func (s *Spool) Refuse(k Kind, name string, why Refusal, now time.Time) error {
	return s.change(func(st *state) error {
		st.Refused[why]++
		if k.Program != "" {
			st.program(k, name, now).Refused[why]++
		}
		if v := st.Signatures[k.Signature]; v != nil {
			if v.Pending = (time.Time{}); v.Kept.IsZero() {
				delete(st.Signatures, k.Signature)
			}
		}
		return nil
	})
}
