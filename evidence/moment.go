package evidence

import (
	"fmt"
	"strconv"
	"strings"
)

// Moment is a point of a replay. A replay is deterministic, so it names the
// same point in every replay of a recording.
type Moment struct {
	// Thread is the thread's number in the recording, from 1, the main thread.
	Thread uint32 `json:"thread"`
	// Ordinal is that of the thread's last recorded event, from 1, which is its
	// start.
	Ordinal uint64 `json:"ordinal"`
	// PC is the thread's next instruction; 0 is right after the event.
	PC Addr `json:"pc,omitempty"`
	// Count is how many times PC was reached since the event, from 1; 0 if
	// there is no PC.
	Count uint64 `json:"count,omitempty"`
}

// String is THREAD:ORDINAL[:PC[:COUNT]], which ParseMoment reads. A count of 1
// is left out.
func (m Moment) String() string {
	text := fmt.Sprintf("%d:%d", m.Thread, m.Ordinal)
	if m.PC == 0 {
		return text
	}
	text += ":" + m.PC.String()
	if m.Count > 1 {
		text += fmt.Sprintf(":%d", m.Count)
	}
	return text
}

// ParseMoment reads THREAD:ORDINAL[:PC[:COUNT]]. The numbers are decimal, PC is
// hexadecimal with 0x before it.
func ParseMoment(text string) (Moment, error) {
	var m Moment
	wrong := func(what string) (Moment, error) {
		return Moment{}, fmt.Errorf("%q is no moment: %s (THREAD:EVENT[:PC[:COUNT]], as in 3:1204:0x401156)", text, what)
	}
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 4 {
		return wrong(fmt.Sprintf("it has %d parts", len(parts)))
	}
	thread, err := strconv.ParseUint(parts[0], 10, 32)
	if err != nil || thread == 0 {
		return wrong("the thread is a number from 1")
	}
	m.Thread = uint32(thread)
	if m.Ordinal, err = strconv.ParseUint(parts[1], 10, 64); err != nil || m.Ordinal == 0 {
		return wrong("the event is a number from 1")
	}
	if len(parts) > 2 {
		digits, ok := strings.CutPrefix(parts[2], "0x")
		pc, err := strconv.ParseUint(digits, 16, 64)
		if !ok || err != nil || pc == 0 {
			return wrong("the pc is an address such as 0x401156")
		}
		m.PC, m.Count = Addr(pc), 1
	}
	if len(parts) > 3 {
		if m.Count, err = strconv.ParseUint(parts[3], 10, 64); err != nil || m.Count == 0 {
			return wrong("the count is a number from 1")
		}
	}
	return m, nil
}
