// Package accesslog reads access logs written by hand, for tests. One line is one
// step of one thread, in the order of the replay; # begins a comment:
//
//	run failed              # or: run passed, which is what it is without
//	main t1                 # thread 1 runs main
//	t1 create t2 worker     # an event; t2 runs worker, and its first event is its start
//	t1 W x 0->1 @12         # line 12 of the function that the thread was started with
//	t1 R x 1 @deposit:14    # line 14 of deposit
//	t1 RW x 1->2 @14        # reads and writes in one instruction
//	t1 W x+8 0->1 @12       # another word of the same variable
//	t1 lock L / unlock L / rdlock L / waits L
//	t1 signal 14 / return   # a handler, on top of what the thread does
//	t1 post s / t1 wait s   # what the last poster did is before the waiter's next
//	t1 join t2
//	t1 event                # any other event
//	t1 W x 0->1 @12 by heap # or: by call
//	t1 changed x 0->1       # x has another value, and no instruction stored it
//	t1 reaches x            # a system call that may change x unseen
//	alias y x+8             # y is the memory of x from offset 8 on
//	turn 3                  # the thread of the next step has its turn 3; else each change of thread is a turn
//	untraced x it is gone   # nothing is known of x, for that reason
package accesslog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"diagnose/evidence"
)

// Event is one event of a thread.
type Event struct {
	Thread  uint32
	Ordinal uint64
	// What names the step's verb: "lock", "signal"; Object is the verb's object.
	What, Object string
}

// Text is the content of a text.
type Text struct {
	Log    *evidence.AccessLog
	Events []Event
}

// Log parses a text, and panics if it is wrong: tests have it in their sources.
func Log(text string) *evidence.AccessLog { return Parse(text).Log }

// Parse parses a text, and panics if it is wrong.
func Parse(text string) *Text {
	p := &parser{
		out: &Text{Log: &evidence.AccessLog{
			Recording: "run", LockSets: [][]evidence.Lock{nil}, Threads: map[uint32]evidence.ThreadRef{},
		}},
		threads: map[string]*thread{}, variables: map[string]int32{}, contexts: map[string]int32{},
		locks: map[string]evidence.Addr{}, sets: map[string]int32{"[]": 0}, posts: map[string]Event{},
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if err := p.step(fields); err != nil {
			panic(fmt.Sprintf("accesslog: line %d, %q: %v", number, strings.TrimSpace(line), err))
		}
	}
	return p.out
}

type thread struct {
	number   uint32
	start    string
	ordinal  uint64
	held     []evidence.Lock
	handlers []uint8
}

type parser struct {
	out                 *Text
	threads             map[string]*thread
	variables, contexts map[string]int32
	locks               map[string]evidence.Addr
	sets                map[string]int32
	posts               map[string]Event
	position, turn      uint64
	running             *thread
}

func (p *parser) step(fields []string) error {
	switch {
	case fields[0] == "run" && len(fields) == 2:
		p.out.Log.Failed = fields[1] == "failed"
		return nil
	case fields[0] == "untraced" && len(fields) > 2:
		p.out.Log.Variables[p.variable(fields[1])].Untraced = strings.Join(fields[2:], " ")
		return nil
	case fields[0] == "alias" && len(fields) == 3:
		return p.alias(fields[1], fields[2])
	case fields[0] == "turn" && len(fields) == 2:
		n, err := strconv.ParseUint(fields[1], 10, 64)
		p.turn, p.running = n, nil
		return err
	case fields[0] == "main" && len(fields) == 2:
		return p.start(fields[1], "main")
	case len(fields) < 2:
		return fmt.Errorf("too short")
	}
	t := p.threads[fields[0]]
	if t == nil {
		if err := p.start(fields[0], "worker"); err != nil {
			return err
		}
		t = p.threads[fields[0]]
	}
	if p.running != nil && p.running != t || p.turn == 0 {
		p.turn++
	}
	p.running = t
	verb, rest := fields[1], fields[2:]
	if verb == "changed" {
		return p.changed(t, rest)
	}
	if verb == "R" || verb == "W" || verb == "RW" {
		return p.access(t, verb, rest)
	}
	object := ""
	if len(rest) > 0 {
		object = rest[0]
	}
	return p.event(t, verb, object, rest)
}

func (p *parser) start(name, function string) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, "t"), 10, 16)
	if err != nil || p.threads[name] != nil {
		return fmt.Errorf("%s is no new thread", name)
	}
	t := &thread{number: uint32(n), start: function}
	p.threads[name] = t
	p.out.Log.Threads[t.number] = evidence.ThreadRef{Number: int(n), TID: 100 + int(n), Start: function}
	p.done(t, "start", "")
	return nil
}

// done is an event of a thread.
func (p *parser) done(t *thread, what, object string) Event {
	t.ordinal++
	p.position++
	e := Event{t.number, t.ordinal, what, object}
	p.out.Events = append(p.out.Events, e)
	return e
}

func (p *parser) edge(from, to Event, lock bool) {
	p.out.Log.Order = append(p.out.Log.Order, evidence.OrderEdge{
		From: from.Thread, FromOrdinal: from.Ordinal, To: to.Thread, ToOrdinal: to.Ordinal, Lock: lock,
	})
}

func (p *parser) event(t *thread, verb, object string, rest []string) error {
	switch verb {
	case "create":
		e := p.done(t, verb, object)
		function := "worker"
		if len(rest) > 1 {
			function = rest[1]
		}
		if err := p.start(object, function); err != nil {
			return err
		}
		p.edge(e, p.out.Events[len(p.out.Events)-1], false)
	case "join":
		other := p.threads[object]
		if other == nil {
			return fmt.Errorf("no thread %s", object)
		}
		exit := p.done(other, "exit", "")
		p.edge(exit, p.done(t, verb, object), false)
	case "post":
		p.posts[object] = p.done(t, verb, object)
	case "wait":
		post, ok := p.posts[object]
		if !ok {
			return fmt.Errorf("nothing was posted to %s", object)
		}
		p.edge(post, p.done(t, verb, object), false)
	case "lock", "rdlock":
		e := p.done(t, verb, object)
		l := evidence.Lock{Address: p.lock(object), Name: object, Shared: verb == "rdlock", Taken: e.Ordinal}
		p.acquisition(t, l, rest[1:], false)
		t.held = append(t.held, l)
	case "waits":
		p.acquisition(t, evidence.Lock{Address: p.lock(object), Name: object}, rest[1:], true)
	case "unlock":
		t.held = slices.DeleteFunc(slices.Clone(t.held), func(l evidence.Lock) bool { return l.Name == object })
	case "signal":
		n, err := strconv.ParseUint(object, 10, 8)
		if err != nil {
			return err
		}
		p.done(t, verb, object)
		t.handlers = append(t.handlers, uint8(n))
	case "return":
		if len(t.handlers) == 0 {
			return fmt.Errorf("is in no handler")
		}
		p.done(t, verb, "")
		t.handlers = t.handlers[:len(t.handlers)-1]
	case "reaches":
		p.done(t, verb, object)
		v := &p.out.Log.Variables[p.variable(object)]
		p.out.Log.Calls = append(p.out.Log.Calls, evidence.Call{Position: p.position, Start: v.Address, Size: uint64(v.Size)})
	case "event":
		p.done(t, verb, object)
	default:
		return fmt.Errorf("no step %q", verb)
	}
	return nil
}

func (p *parser) lock(name string) evidence.Addr {
	if _, ok := p.locks[name]; !ok {
		p.locks[name] = evidence.Addr(0x5000 + 64*len(p.locks))
	}
	return p.locks[name]
}

func (p *parser) acquisition(t *thread, l evidence.Lock, rest []string, waiting bool) {
	if len(t.held) == 0 && !waiting {
		return
	}
	where := "@1"
	if len(rest) > 0 {
		where = rest[0]
	}
	p.out.Log.Acquisitions = append(p.out.Log.Acquisitions, evidence.Acquisition{
		Position: p.position, Turn: p.turn, Ordinal: t.ordinal, Thread: t.number,
		Context: p.context(t, where), Held: p.set(t), Lock: l, Waiting: waiting,
	})
}

func (p *parser) set(t *thread) int32 {
	key := fmt.Sprint(t.held)
	n, ok := p.sets[key]
	if !ok {
		n = int32(len(p.out.Log.LockSets))
		p.sets[key] = n
		p.out.Log.LockSets = append(p.out.Log.LockSets, slices.Clone(t.held))
	}
	return n
}

// context of "@FUNCTION:LINE" or "@LINE".
func (p *parser) context(t *thread, where string) int32 {
	function, line, ok := strings.Cut(strings.TrimPrefix(where, "@"), ":")
	if !ok {
		function, line = t.start, function
		if len(t.handlers) > 0 {
			function = fmt.Sprintf("on_%d", t.handlers[len(t.handlers)-1])
		}
	}
	n, _ := strconv.Atoi(line)
	key := function + " a.c:" + line
	id, ok := p.contexts[key]
	if !ok {
		id = int32(len(p.out.Log.Contexts))
		p.contexts[key] = id
		p.out.Log.Contexts = append(p.out.Log.Contexts, evidence.Context{
			Site: evidence.Site{PC: pcOf(n, false), Function: function, File: "/src/a.c", Line: n}, Key: key,
		})
	}
	return id
}

func pcOf(line int, writes bool) evidence.Addr {
	pc := evidence.Addr(0x401000 + 16*line)
	if writes {
		pc += 8
	}
	return pc
}

func (p *parser) access(t *thread, kind string, rest []string) error {
	if len(rest) < 3 || !strings.HasPrefix(rest[2], "@") {
		return fmt.Errorf("an access is: VARIABLE VALUE @PLACE")
	}
	name, offset, _ := strings.Cut(rest[0], "+")
	at, _ := strconv.ParseUint(offset, 10, 32)
	before, after, writes := strings.Cut(rest[1], "->")
	from, err := strconv.ParseUint(before, 10, 64)
	if err != nil {
		return err
	}
	to := from
	if writes {
		if to, err = strconv.ParseUint(after, 10, 64); err != nil {
			return err
		}
	}
	a := evidence.Access{
		Position: p.position, Turn: p.turn, Ordinal: t.ordinal, Hit: uint64(len(p.out.Log.Accesses)), Old: from, New: to,
		Variable: p.variable(name), Context: p.context(t, rest[2]), Locks: p.set(t), Thread: t.number,
		Offset: uint32(at), Size: 8, Kind: map[string]evidence.AccessCode{
			"R": evidence.CodeRead, "W": evidence.CodeWrite, "RW": evidence.CodeReadWrite}[kind],
	}
	a.PC = pcOf(p.out.Log.Contexts[a.Context].Site.Line, kind == "W")
	if len(t.handlers) > 0 {
		a.Handler = t.handlers[len(t.handlers)-1]
	}
	switch strings.Join(rest[3:], " ") {
	case "by heap":
		a.By = evidence.ByHeap
	case "by call":
		a.By = evidence.ByCall
	}
	p.out.Log.Accesses = append(p.out.Log.Accesses, a)
	return nil
}

// changed is a change of a value that passes see as a system call's without an instruction.
func (p *parser) changed(t *thread, rest []string) error {
	if len(rest) != 2 {
		return fmt.Errorf("a change is: VARIABLE OLD->NEW")
	}
	if err := p.access(t, "W", append(rest, "@1", "by", "call")); err != nil {
		return err
	}
	p.out.Log.Accesses[len(p.out.Log.Accesses)-1].PC = 0
	return nil
}

// alias makes a variable of memory that another one has, from "NAME+OFFSET" on.
func (p *parser) alias(name, of string) error {
	base, offset, _ := strings.Cut(of, "+")
	at, err := strconv.ParseUint(offset, 10, 32)
	if err != nil {
		return err
	}
	address := p.out.Log.Variables[p.variable(base)].Address
	p.out.Log.Variables[p.variable(name)].Address = address + evidence.Addr(at)
	return nil
}

func (p *parser) variable(name string) int32 {
	n, ok := p.variables[name]
	if !ok {
		n = int32(len(p.out.Log.Variables))
		p.variables[name] = n
		p.out.Log.Variables = append(p.out.Log.Variables, evidence.Watched{
			Name: name, Address: evidence.Addr(0x4000 + 64*int(n)), Size: 16, Pass: 1,
		})
	}
	p.out.Log.Variables[n].Hits++
	return n
}
