package delta

import (
	"fmt"
	"math"

	"diagnose/evidence"
)

// Runs are the logs of several runs, with common numbers for their variables,
// code and contexts.
type Runs struct {
	Failing, Passing []*Run
	// Variables are the names of all variables, Codes the logs' descriptions of
	// each place of the code, roles the kinds of context: "main", "worker",
	// "handler of signal 14".
	Variables []string
	Codes     []evidence.Context
	roles     []role
}

// role is a kind of context.
type role struct {
	kind roleKind
	name string
}

// roleKind says what of a run has a role.
type roleKind uint8

const (
	roleUnknown roleKind = iota // a thread of which no name is known
	roleThread
	roleHandler // of a signal
)

// mostThreads is one more than the highest number of a recording's thread.
const mostThreads = 1 << 16

// Run is one log. Its accesses are identified by their indices in Log.Accesses.
type Run struct {
	Log *evidence.AccessLog
	// Variable and Code map the log's indices to those of Runs.
	Variable, Code []int32
	roles          []int32 // by thread: the number + 1
	handlers       [256]int32
	codes          int32
}

// Place is a place of the code in a kind of context: Role * len(Codes) + Code.
type Place int64

// InputError says that the logs are of runs that cannot be compared.
type InputError struct{ What string }

func (e *InputError) Error() string { return "delta: " + e.What }

// Align numbers the variables, code and contexts of all logs together. The logs
// must not change while the result is used.
func Align(failing, passing []*evidence.AccessLog) (*Runs, error) {
	if len(failing) == 0 {
		return nil, &InputError{"there is no log of a failing run"}
	}
	n := numbering{runs: &Runs{}, variables: map[string]int32{}, codes: map[string]int32{}, roles: map[role]int32{}}
	for _, log := range failing {
		run, err := n.addLog(log)
		if err != nil {
			return nil, err
		}
		n.runs.Failing = append(n.runs.Failing, run)
	}
	for _, log := range passing {
		if log.Failed {
			return nil, &InputError{fmt.Sprintf("%s is of a run that failed, and given as one that passed", log.Recording)}
		}
		run, err := n.addLog(log)
		if err != nil {
			return nil, err
		}
		n.runs.Passing = append(n.runs.Passing, run)
	}
	for _, run := range n.all() {
		run.codes = int32(len(n.runs.Codes))
	}
	return n.runs, nil
}

// Place returns the place of an access.
func (r *Run) Place(a *evidence.Access) Place {
	return Place(r.Role(a))*Place(r.codes) + Place(r.Code[a.Context])
}

// Role returns the role of an access.
func (r *Run) Role(a *evidence.Access) int32 {
	if a.Handler != 0 {
		return r.handlers[a.Handler] - 1
	}
	return r.roles[a.Thread] - 1
}

// Role returns the role of a place.
func (r *Runs) Role(p Place) string { return r.role(p).name }

func (r *Runs) role(p Place) *role { return &r.roles[int(p)/len(r.Codes)] }

// Code returns the code of a place.
func (r *Runs) Code(p Place) *evidence.Context { return &r.Codes[int(p)%len(r.Codes)] }

// numbering assigns numbers in the order of first appearance.
type numbering struct {
	runs             *Runs
	variables, codes map[string]int32
	roles            map[role]int32
}

func (n *numbering) all() []*Run {
	return append(append([]*Run(nil), n.runs.Failing...), n.runs.Passing...)
}

func (n *numbering) addLog(log *evidence.AccessLog) (*Run, error) {
	if len(log.Accesses) > math.MaxInt32 {
		return nil, &InputError{fmt.Sprintf("%s has more than %d accesses", log.Recording, math.MaxInt32)}
	}
	run := &Run{Log: log}
	for i := range log.Variables {
		run.Variable = append(run.Variable, number(n.variables, &n.runs.Variables, log.Variables[i].Name, log.Variables[i].Name))
	}
	for i := range log.Contexts {
		run.Code = append(run.Code, number(n.codes, &n.runs.Codes, log.Contexts[i].Key, log.Contexts[i]))
	}
	for i := range log.Accesses {
		a := &log.Accesses[i]
		err := check(log, a)
		if err == nil {
			err = n.role(run, a)
		}
		if err != nil {
			return nil, &InputError{fmt.Sprintf("%s, access %d: %v", log.Recording, i, err)}
		}
	}
	return run, nil
}

func (n *numbering) role(run *Run, a *evidence.Access) error {
	if a.Handler != 0 {
		if run.handlers[a.Handler] == 0 {
			r := role{roleHandler, fmt.Sprintf("handler of signal %d", a.Handler)}
			run.handlers[a.Handler] = number(n.roles, &n.runs.roles, r, r) + 1
		}
		return nil
	}
	if int(a.Thread) >= len(run.roles) {
		if a.Thread >= mostThreads {
			return fmt.Errorf("thread %d of at most %d", a.Thread, mostThreads-1)
		}
		run.roles = append(run.roles, make([]int32, int(a.Thread)+1-len(run.roles))...)
	}
	if run.roles[a.Thread] == 0 {
		r := roleOf(run.Log.Threads[a.Thread])
		run.roles[a.Thread] = number(n.roles, &n.runs.roles, r, r) + 1
	}
	return nil
}

// roleOf returns a thread's role: its start function is the same in every run,
// its number is not.
func roleOf(t evidence.ThreadRef) role {
	switch {
	case t.Start != "":
		return role{roleThread, t.Start}
	case t.Name != "":
		return role{roleThread, t.Name}
	}
	return role{roleUnknown, "thread"}
}

func check(log *evidence.AccessLog, a *evidence.Access) error {
	switch {
	case a.Variable < 0 || int(a.Variable) >= len(log.Variables):
		return fmt.Errorf("variable %d of %d", a.Variable, len(log.Variables))
	case a.Context < 0 || int(a.Context) >= len(log.Contexts):
		return fmt.Errorf("context %d of %d", a.Context, len(log.Contexts))
	case a.Locks < 0 || int(a.Locks) >= max(1, len(log.LockSets)):
		return fmt.Errorf("lock set %d of %d", a.Locks, len(log.LockSets))
	}
	return nil
}

func number[K comparable, T any](numbers map[K]int32, list *[]T, key K, value T) int32 {
	n, ok := numbers[key]
	if !ok {
		n = int32(len(*list))
		numbers[key] = n
		*list = append(*list, value)
	}
	return n
}
