package ask

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/probe"
)

// Form is a kind of question.
type Form string

// The forms of a question. Each takes one thing to ask about.
const (
	// FormWrites are all writes of an expression, FormLastWrite the last one, with its stack.
	FormWrites    Form = "writes"
	FormLastWrite Form = "last-write"
	// FormValues are the values of an expression over time.
	FormValues Form = "values"
	// FormCalls are the calls of a function, with arguments and results.
	FormCalls Form = "calls"
	// FormExecuted are the times at which a line was executed.
	FormExecuted Form = "executed"
	// FormDid is what a thread did: calls, locks, system calls, signals.
	FormDid Form = "did"
	// FormHolders are the threads that held a lock.
	FormHolders Form = "holders"
)

// Question is a question about a recording.
type Question struct {
	Form Form
	// Asked is the expression, the function, the line or the thread.
	Asked string
	// From and Until bound the span; nil: the start and the end of the recording. What happens at Until is
	// not in it. Expressions name memory as it is at Until, in the frames of its thread.
	From, Until *evidence.Moment
	// Most bounds the rows; 0: all.
	Most  int
	Image image.Options
	// Progress, if set, is called from time to time, by one goroutine at a time.
	Progress func(Progress)
}

// Stage is a step of the work.
type Stage string

// The stages of an answer.
const (
	StageResolve Stage = "resolve" // what the expression names is looked for
	StageWatch   Stage = "watch"   // replays with watches: Done of Total have ended
	StageDetails Stage = "details" // one write is seen again
	StageReplay  Stage = "replay"  // a replay: Done of Total events
)

// Progress is how far an answer has come.
type Progress struct {
	Stage       Stage
	Done, Total uint64
	Rows        uint64
}

// Error says that a question cannot be asked of the recording, and what there is in its place.
type Error = probe.Error
