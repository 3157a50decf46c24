package evidence

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// LimitCode says which limit it is. Programs read it, never the text.
type LimitCode string

// The limits of replays. After each are the fields of Limit that it has besides Code
// and Text.
const (
	// LimitPassEnded: the replay with watches of number Pass left the recorded run. Reason.
	LimitPassEnded LimitCode = "pass-ended-early"
	// LimitTime: the time for the analysis (Time, as --time takes it) ended, and Names were
	// not done.
	LimitTime LimitCode = "time-used-up"
	// LimitInterrupted: the user ended it, and Names were not done.
	LimitInterrupted LimitCode = "interrupted"
	// LimitRecordingCut: the recording ends before the run did. Reason.
	LimitRecordingCut LimitCode = "recording-cut"
	// LimitPartTraced: of the variable Names[0] only the first Count of Of bytes were traced.
	LimitPartTraced LimitCode = "part-traced"
	// LimitBusyLock: the lock at Addr is taken too often to be traced.
	LimitBusyLock LimitCode = "lock-too-busy"
	// LimitFurtherInstructions: Count further instructions may access what the known ones of
	// pass Pass do.
	LimitFurtherInstructions LimitCode = "further-instructions"
	// LimitKnownInstructions: of Names only accesses by Count known instructions are seen; Of
	// others could not be probed, and the first Lost accesses were not kept.
	LimitKnownInstructions LimitCode = "known-instructions-only"
	// LimitManyThreads: the recording Subject has too many threads to follow what orders them.
	LimitManyThreads LimitCode = "too-many-threads"
	// LimitManyPatterns: Count patterns of the recording Subject were left out.
	LimitManyPatterns LimitCode = "too-many-patterns"
	// LimitCrowdedPlaces: the writers of what Count places read were not compared, for they
	// read from more than Of.
	LimitCrowdedPlaces LimitCode = "too-many-writers"
	// LimitPassingWaits and LimitPassingOrders: passing runs were left out of the search, for
	// the orders of accesses of the failing run occur in them.
	LimitPassingWaits  LimitCode = "passing-left-out-of-waits"
	LimitPassingOrders LimitCode = "passing-left-out-of-orders"
	// LimitRustLocks: the owners of the locks of Rust's standard library are not known.
	LimitRustLocks LimitCode = "rust-locks-unknown"
	// LimitUndecidedOrder: no experiment decided whether an order of accesses to Names is
	// the cause. Pattern, Place, Experiment, Reason.
	LimitUndecidedOrder LimitCode = "order-undecided"
	// LimitHandlerWritesMore: the signal handler writes Names as well, so an experiment moves
	// those too.
	LimitHandlerWritesMore LimitCode = "handler-writes-more"
	// LimitReturnedValue: the call that returned a value was not followed. Reason.
	LimitReturnedValue LimitCode = "returned-value-not-followed"
	// LimitLockOrders: in which orders the recording Subject takes its locks is not known.
	// Reason.
	LimitLockOrders LimitCode = "lock-orders-unknown"
	// LimitRecordedOrder: the order of the recorded events is not known. Reason.
	LimitRecordedOrder LimitCode = "recorded-order-unknown"
	// LimitSignallers: which threads signal what others wait for is not known. Reason.
	LimitSignallers LimitCode = "signallers-unknown"
	// LimitHeapObjects: of Of heap objects the first Count, by address, were looked at.
	LimitHeapObjects LimitCode = "too-many-heap-objects"
	// LimitStackVariables: the variables on stacks are not known. Reason.
	LimitStackVariables LimitCode = "stack-variables-unknown"
	// LimitManyStackVariables: of the variables on stacks Count were looked at.
	LimitManyStackVariables LimitCode = "too-many-stack-variables"
	// LimitStacks: the stacks of accesses in the recording Subject are not known. Reason.
	LimitStacks LimitCode = "stacks-unknown"
	// LimitUnmapped: at the end of the recording nothing is mapped at Addr, where Names[0] is.
	LimitUnmapped LimitCode = "unmapped"
	// LimitOfRecording: the recorder could not record something, of the kind Kind. Reason.
	LimitOfRecording LimitCode = "not-recorded"
	// LimitReplayEnded: the replay does not reach the end of the recording. Reason.
	LimitReplayEnded LimitCode = "replay-ended-early"
	// LimitContradicted: two looks at the memory Names[0] at Addr contradict each other, which
	// is a defect of the tool: one found no store there, the other did. The report says nothing of it.
	LimitContradicted LimitCode = "contradicted"
	// LimitContradictedOrder: logs have the order of accesses Pattern to Names at Place, and a
	// replay that stops at each of them has another, which is a defect of the tool. The order is left out.
	LimitContradictedOrder LimitCode = "contradicted-order"
	// LimitLogContradicted: the log of accesses contradicts itself, which is a defect of the tool.
	// Nothing is proved from it. Names[0] is the variable, Addr the word, Contradiction the accesses.
	LimitLogContradicted LimitCode = "log-contradicted"
	// LimitNeverReplayed: none of Of replays failed as recorded. Reason is how the last one ended.
	LimitNeverReplayed LimitCode = "never-failed-as-recorded"
	// LimitSimilarFailure: replays fail at the recorded instruction, which then reads another value
	// from Names[0], a register or memory.
	LimitSimilarFailure LimitCode = "similar-failure"
	// LimitOtherState: the replay of the recording Subject ends at the recorded place, and Count ranges
	// of memory, registers and mappings differ from the core.
	LimitOtherState LimitCode = "other-state"
	// LimitUnproved: an experiment agrees with the cause in Names[0], and a rule of proofs is broken.
	// Reason is that rule.
	LimitUnproved LimitCode = "proof-rule-broken"
	// LimitRaceReport: a part of the race detector's report Subject was not read. Reason.
	LimitRaceReport LimitCode = "race-report-cut"
	// LimitFailedPart: a part of the analysis failed. Reason is its error.
	LimitFailedPart LimitCode = "part-failed"
)

// Limit is something that the analysis could not cover, and what that means
// for the reader: missing debug information, memory that the core lacks.
type Limit struct {
	// Code says which limit it is; only documents before version 2.1 have limits without one.
	// The other fields have what Text says in words, as the codes tell.
	Code LimitCode `json:"code,omitempty"`
	// Subject is the file, module, recording or thread concerned; may be empty.
	Subject string `json:"subject,omitempty"`
	// Text is one sentence without a final stop. With a code it names the subject.
	Text string `json:"text"`
	// Severe limits may falsify the rest of the report (a mismatched
	// executable, a truncated core) and are printed first and loudly.
	Severe bool `json:"severe,omitempty"`
	// Pass is a replay with watches, from 1.
	Pass int `json:"pass,omitempty"`
	// Count of Of were covered, or were not; Lost were not kept.
	Count uint64 `json:"count,omitempty"`
	Of    uint64 `json:"of,omitempty"`
	Lost  uint64 `json:"lost,omitempty"`
	// Addr is the memory concerned, Names the variables or the parts of the analysis.
	Addr  Addr     `json:"addr,omitempty"`
	Names []string `json:"names,omitempty"`
	// Kind is the recorder's name of a limit of the recording.
	Kind string `json:"kind,omitempty"`
	// Contradiction is that of a log of accesses.
	Contradiction *Contradiction `json:"contradiction,omitempty"`
	// Time is a duration as command lines take it.
	Time string `json:"time,omitempty"`
	// Pattern, Place and Experiment are of an order of accesses: its kind, its places and
	// the change.
	Pattern    PatternKind `json:"pattern,omitempty"`
	Place      string      `json:"place,omitempty"`
	Experiment string      `json:"experiment,omitempty"`
	// Reason is the error or the phrase that says why.
	Reason string `json:"reason,omitempty"`
}

// Worded returns the limit with the text that its code and its facts have.
func (l Limit) Worded() Limit {
	l.Text = Say(l.words())
	return l
}

// words is the text of a limit with a code.
func (l *Limit) words() string {
	switch l.Code {
	case LimitNeverReplayed:
		return fmt.Sprintf("0 of %d replays failed as recorded (%s), so no cause is named", l.Of, l.Reason)
	case LimitSimilarFailure:
		return fmt.Sprintf("the replay fails at the recorded instruction, but %s has another value then: it is a similar failure, and nothing is proved", l.Names[0])
	case LimitOtherState:
		return fmt.Sprintf("same place, other state: the replay of %s fails where the recording did, and its memory and registers differ from the core (differences: %d). Accesses that no event orders came in another order",
			l.Subject, l.Count)
	case LimitUnproved:
		return fmt.Sprintf("the failure went away with %s changed, but a proof requires that %s", l.Names[0], l.Reason)
	case LimitPassEnded:
		return fmt.Sprintf("pass %d ended early: %s", l.Pass, l.Reason)
	case LimitTime:
		text := "the time was used up"
		if l.Time != "" {
			text += " (--time " + l.Time + ")"
		}
		return text + l.notDone()
	case LimitInterrupted:
		return "it was interrupted" + l.notDone()
	case LimitPartTraced:
		return fmt.Sprintf("of %s only the first %d of %d bytes were traced", l.names(), l.Count, l.Of)
	case LimitBusyLock:
		return fmt.Sprintf("the lock at %v is taken too often for its order to be traced", l.Addr)
	case LimitFurtherInstructions:
		return fmt.Sprintf("%d further instructions may access what the instructions of pass %d do", l.Count, l.Pass)
	case LimitKnownInstructions:
		return l.knownInstructions()
	case LimitRecordedOrder:
		return "the order of the recorded events: " + l.Reason
	case LimitSignallers:
		return "which threads signal what others wait for: " + l.Reason
	case LimitHeapObjects:
		return fmt.Sprintf("of the %d heap objects of the program the first %d, by address, were looked at", l.Of, l.Count)
	case LimitStackVariables:
		return "variables on stacks: " + l.Reason
	case LimitManyStackVariables:
		return fmt.Sprintf("of the variables on stacks %d were looked at", l.Count)
	case LimitUnmapped:
		return fmt.Sprintf("%s: nothing is mapped at %v at the end of the recording", l.names(), l.Addr)
	case LimitReturnedValue:
		return "the way through a call that returned the value was not followed: " + l.Reason
	case LimitContradicted:
		return fmt.Sprintf("a defect of diagnose: one replay saw no store to %s and another one did, so the report names no origin of its value", l.names())
	case LimitLogContradicted:
		return fmt.Sprintf("a defect of diagnose: the logged accesses to %s contradict each other, so nothing is proved from them", l.names()) + l.Contradiction.words()
	case LimitStacks:
		return fmt.Sprintf("%s: the stacks of the accesses are not known: %s", l.Subject, l.Reason)
	}
	if text, ok := l.orderWords(); ok {
		return text
	}
	if text, ok := l.processWords(); ok {
		return text
	}
	if l.Subject != "" {
		return l.Subject + ": " + l.Reason
	}
	return l.Reason
}

// orderWords is the text of the limits of what orders of accesses tell.
func (l *Limit) orderWords() (string, bool) {
	switch l.Code {
	case LimitLockOrders:
		return fmt.Sprintf("%s: the orders of its locks: %s", l.Subject, l.Reason), true
	case LimitManyThreads:
		return l.Subject + ": too many threads to tell what the program orders itself", true
	case LimitManyPatterns:
		return fmt.Sprintf("%s: too many different patterns; up to %d are left out, those that were seen longest before its end", l.Subject, l.Count), true
	case LimitCrowdedPlaces:
		return fmt.Sprintf("the writers of the values read were not compared at %d places, which read from more than %d others", l.Count, l.Of), true
	case LimitPassingWaits:
		return "no order of accesses occurs in failing runs alone: in passing runs the wait comes before or after the same accesses; passing runs were left out of this search", true
	case LimitPassingOrders:
		return "passing runs have the orders of accesses that the failing one has, at the same lines; they were left out then, and the orders tried by experiment", true
	case LimitRustLocks:
		return "the locks of Rust's standard library (Mutex, RwLock) are no pthread locks: which thread holds them is not known", true
	case LimitContradictedOrder:
		return fmt.Sprintf("a replay that stops at each access has %s of %s at %s in another order than the passes that logged them: this is a defect of diagnose, and the order was left out",
			l.Pattern, l.names(), l.Place), true
	case LimitUndecidedOrder:
		return fmt.Sprintf("%s of %s at %s may be the cause or not: %s: %s", l.Pattern, l.names(), l.Place, l.Experiment, l.Reason), true
	case LimitHandlerWritesMore:
		return fmt.Sprintf("the handler also writes %s: a signal that comes elsewhere changes the order of those accesses as well, so which variable matters is not proved", l.names()), true
	}
	return "", false
}

func (l *Limit) knownInstructions() string {
	names := l.names()
	if len(l.Names) > 1 {
		names = fmt.Sprintf("%s and %d others", l.Names[0], len(l.Names)-1)
	}
	text := fmt.Sprintf("%s: only accesses by %d known instructions of the program are seen", names, l.Count)
	if l.Of > 0 {
		text += fmt.Sprintf(", %d others cannot be probed", l.Of)
	}
	if l.Lost > 0 {
		text += fmt.Sprintf("; the first %d accesses were not kept", l.Lost)
	}
	return text
}

func (l *Limit) notDone() string {
	if len(l.Names) == 0 {
		return ""
	}
	return "; not done: " + strings.Join(l.Names, ", ")
}

func (l *Limit) names() string { return strings.Join(l.Names, " and ") }

// Same reports whether two limits say the same, in whatever words.
func (l *Limit) Same(other *Limit) bool {
	a, b := *l, *other
	if a.Code == "" && b.Code == "" {
		return a.Subject == b.Subject && a.Text == b.Text
	}
	if !slices.Equal(a.Names, b.Names) || (a.Contradiction == nil) != (b.Contradiction == nil) || a.Contradiction != nil && *a.Contradiction != *b.Contradiction {
		return false
	}
	return a.Code == b.Code && a.Subject == b.Subject && a.Pass == b.Pass && a.Count == b.Count && a.Of == b.Of && a.Lost == b.Lost && a.Addr == b.Addr &&
		a.Kind == b.Kind && a.Time == b.Time && a.Pattern == b.Pattern && a.Place == b.Place && a.Experiment == b.Experiment && a.Reason == b.Reason
}

// UnmarshalJSON implements json.Unmarshaler. Documents before version 2 have a limit of a
// replay as its text alone.
func (l *Limit) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*l = Limit{}
		return json.Unmarshal(data, &l.Text)
	}
	type plain Limit
	return json.Unmarshal(data, (*plain)(l))
}

// AddLimit adds a limit, worded by its code, that the list does not have yet.
func AddLimit(list []Limit, l Limit) []Limit {
	if l.Code != "" {
		l = l.Worded()
	}
	if HasLimit(list, &l) {
		return list
	}
	return append(list, l)
}

// HasLimit reports whether the list has a limit that says the same.
func HasLimit(list []Limit, l *Limit) bool {
	return slices.ContainsFunc(list, func(x Limit) bool { return x.Same(l) })
}

// LimitOf returns the first limit with one of the codes; nil: there is none.
func LimitOf(list []Limit, codes ...LimitCode) *Limit {
	for i := range list {
		if slices.Contains(codes, list[i].Code) {
			return &list[i]
		}
	}
	return nil
}
