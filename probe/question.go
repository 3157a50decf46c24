package probe

import (
	"fmt"
	"strings"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/probe/blocks"
	"diagnose/probe/sandbox"
	"diagnose/replay"
)

// Kind is what a place is asked about.
type Kind string

// The kinds of places.
const (
	KindLine    Kind = "line"
	KindCall    Kind = "call"
	KindReturn  Kind = "return"
	KindSyscall Kind = "syscall"
	KindSignal  Kind = "signal"
	KindCode    Kind = "code"
	KindWrite   Kind = "write"
)

// Result is the name by which expressions of a return call what the function returns.
const Result = "$result"

// Question names the places and the expressions.
type Question struct {
	// Lines are FILE:LINE, the file by its whole path or the end of it. Calls and Returns are
	// functions, qualified in C++ and Rust, or by their last names. Syscalls are system calls by name.
	Lines, Calls, Returns, Syscalls []string
	// Signals asks for the signals that a handler of the program took.
	Signals bool
	// Writes are expressions of watchtrace.Resolve whose writes are asked about. A question has either these or other places.
	Writes []string
	// Every asks for the calls of every function that the program itself has code of, as Calls does.
	Every bool
	// From and Until bound the part of the recording that has rows; nil: its start, its end. The replay ends at Until.
	From, Until *evidence.Moment
	// Thread is the one that has rows; 0: all have.
	Thread uint32
	// Print are expressions of C. At calls without any, the parameters are printed; at returns the
	// result.
	Print []string
	// Code is debug code, which runs at its own places.
	Code       []*blocks.Source
	CodeLimits sandbox.Limits
	// Stops: a thread stops at each arrival, and the tool evaluates the expressions; else code in the process does so where it can.
	Stops bool
	// If is the condition of a row; empty: there is a row each time.
	If string
	// Stack adds the stack to each row.
	Stack bool
	// Most bounds the rows. The replay ends when there are so many, unless Verify is set.
	Most int
	// Verify compares the end of the replay with the recorded one.
	Verify bool
	Image  image.Options
	// Progress, if set, is called from time to time.
	Progress func(Progress)
}

// Progress is how far a replay has come.
type Progress struct {
	Events, Total uint64
	Rows          int
}

// Log is the answer.
type Log struct {
	// Recording is its directory; Failed that the recorded run did.
	Recording string
	Failed    bool
	Places    []Place
	// Code are the blocks of debug code.
	Code []Code
	// Rows are in the order in which the places were reached.
	Rows []Row
	// Arrivals counts how often threads reached a place, Held how often the condition held.
	Arrivals, Held uint64
	// Undecided counts how often the condition had no value. Reason is that of the first time.
	Undecided uint64
	Reason    evidence.Value
	// Cut: the replay ended at the bound of rows, so there may be more.
	Cut bool
	// Limits are what a trace of writes could not see.
	Limits []evidence.Limit
	// Replay is the replay that answered. Moved and trapped instructions say by which mechanism.
	Replay  *replay.Result
	Elapsed time.Duration
}

// Place is an instruction, or a kind of event, that was asked about. A line or a function may have
// several: where it was inlined, instances of a template, parts of a line.
type Place struct {
	Kind  Kind
	Asked string
	// PC is the instruction; 0 for events. Site is where it is, in the function that was asked
	// about.
	PC      evidence.Addr
	Site    evidence.Site
	Inlined bool
	Hits    uint64
	// Unreachable: threads could not be stopped there, so it was not observed.
	Unreachable bool
	// Missed counts the returns that could not be observed: threads could not be stopped there, or another function may have
	// returned. Left counts the calls of which no return was seen although the thread continued elsewhere: they were left by longjmp
	// or an exception, ended by calling another function through the same pointer, or have a stack of their own that waits.
	Missed, Left uint64
	// Inferred: the compiler says of no statement of the line that it begins in this function. The
	// place is an instruction of the line, which may also be executed where the line is not.
	Inferred bool
	// Code is an index into Log.Code, for debug code. Others are the further instructions at which code of its line begins in the same
	// function, where it does not run.
	Code   int
	Others []evidence.Addr
	// level is that of the function in the inline chain at inside.
	level  int
	inside evidence.Addr
}

// Row is one time that a thread reached a place.
type Row struct {
	// Moment names the same point in every replay of the recording; Position is the number of
	// events that all threads had done.
	Moment   evidence.Moment
	Position uint64
	// Place is an index into Log.Places.
	Place int
	// Call numbers the calls of a question, from 1: the rows of one call, at its entry and at its return, have the same. 0: the
	// row is of something else.
	Call uint64
	// Event is the system call or the signal.
	Event string
	// Site is the line that is responsible for a write.
	Site evidence.Site
	// Values are the expressions with their values.
	Values []evidence.Variable
	Stack  []string
	// Printed is what debug code printed; Failure is why it did not run to its end, nil if it did.
	Printed string
	Failure *CodeFailure
}

// Error says that a question cannot be asked of the program, and what there is in its place.
type Error struct {
	// Asked is the part of the question that is wrong.
	Asked   string
	Problem string
	// Nearest are what may have been meant, the likeliest first.
	Nearest []string
}

func (e *Error) Error() string { return "probe: " + e.Bare() }

// Bare is the text for wording.Bare.
func (e *Error) Bare() string {
	text := fmt.Sprintf("%s: %s", e.Asked, e.Problem)
	if len(e.Nearest) > 0 {
		text += "; there is " + strings.Join(e.Nearest, ", ")
	}
	return text
}
