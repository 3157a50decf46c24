package probe

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/expression"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/probe/sandbox"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// Ask replays the recording and answers the question. The error is an *Error if the question is
// wrong, or that of the replay; of a replay that diverged or got stuck the log has what came before.
func Ask(ctx context.Context, rec *record.Recording, q *Question) (*Log, error) {
	started := time.Now()
	o := &rec.Manifest.Outcome
	r := &run{ctx: ctx, q: q, rec: rec, log: &Log{Recording: filepath.Base(rec.Dir), Failed: !o.Passed()}, asked: map[askedKey]*asked{}, frames: map[evidence.Addr]frameRule{}, code: newCodeRun(q)}
	if q.Image.Files == nil {
		files := image.NewFiles()
		defer files.Close()
		q.Image.Files = files
	}
	defer r.code.close()
	if len(q.Writes) > 0 {
		return r.writes(ctx, started)
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	r.addBounds()
	defer r.close()
	request := replay.ProbeRequest{Verify: q.Verify,
		Common: replay.Common{Image: q.Image, Hooks: r.hooks, Unnamed: true, Progress: r.progress},
		Probing: replay.Probing{Copies: len(q.Code) > 0, Asks: !q.Stops, At: r.instructions(), Files: r.files, Begin: r.begin, OnArrival: r.arrived,
			Rules: r.rules, OnLogged: r.logged, OnCounted: r.counted, Room: r.room}}
	var err error
	r.log.Replay, err = replay.Run(ctx, rec, request)
	if r.log.Replay == nil {
		return nil, err
	}
	r.returns.finish()
	for i := range r.log.Places {
		p := &r.log.Places[i]
		p.Unreachable = p.PC != 0 && slices.Contains(r.log.Replay.Unreachable, p.PC)
	}
	r.log.Elapsed = time.Since(started)
	return r.log, err
}

// run is the replay of a question.
type run struct {
	ctx   context.Context
	q     *Question
	rec   *record.Recording
	log   *Log
	at    map[evidence.Addr][]int // indices of places by instruction
	hooks []replay.Hook
	// files are those that the instructions are of.
	files map[evidence.Addr]replay.MappedFile
	// process is the replayed process when it had loaded its objects loads times.
	process  *image.Process
	unwinder *unwind.Unwinder
	loads    int
	asked    map[askedKey]*asked
	thread   image.Thread
	// frames are those of the instructions of process that were asked for.
	frames  map[evidence.Addr]frameRule
	code    *codeRun
	returns returns
	rows    atomic.Int64 // also read by progress
	// rules are those of the places whose arrivals are handled in the process.
	rules map[evidence.Addr]*replay.Rule
	// back are instructions that calls of functions return to whose returns are asked for.
	back []evidence.Addr
	// targets has for each target of a trace of writes its place.
	targets []int
	// begun: the replay has passed Question.From.
	begun bool
	// calls is the number of the last call, and call is the one that has the next row; 0: none.
	calls, call uint64
}

// askedKey is a place, and for events the instruction that caused one.
type askedKey struct {
	place int
	pc    evidence.Addr
}

// prepare finds the places, and checks the expressions at each of them.
func (r *run) prepare(ctx context.Context) error {
	var compiler *sandbox.Compiler
	var known *headers
	if len(r.q.Code) > 0 {
		var err error
		if compiler, err = sandbox.FindCompiler(); err != nil {
			return err
		}
		if known, err = r.code.headers(ctx, compiler); err != nil {
			return err
		}
	}
	err := watchtrace.AtEnd(ctx, r.rec, r.q.Image, func(p *image.Process) error {
		places, err := r.q.find(p)
		if err != nil {
			return err
		}
		r.log.Places = places
		r.files = filesOf(p, places)
		var first error
		fit := len(places) == 0
		for i := range places {
			x := &places[i]
			if a := r.q.ask(p, x, x.PC); a.err != nil && first == nil {
				first = a.err
			} else if a.err == nil {
				fit = true
			}
		}
		if !fit {
			return first
		}
		r.rules = r.q.rules(p, places)
		if !r.q.Stops {
			r.back = returnPoints(p, places, r.files)
		}
		if len(r.q.Code) == 0 {
			return nil
		}
		return r.code.declare(p, places, known)
	})
	if err != nil {
		return err
	}
	if err := r.code.compile(ctx, compiler, known); err != nil {
		return err
	}
	if err := r.findEvents(); err != nil {
		return err
	}
	r.at = map[evidence.Addr][]int{}
	for i, x := range r.log.Places {
		if x.PC != 0 {
			r.at[x.PC] = append(r.at[x.PC], i)
		}
	}
	return nil
}

// filesOf returns where the files are mapped that places are of.
func filesOf(p *image.Process, places []Place) map[evidence.Addr]replay.MappedFile {
	files := map[evidence.Addr]replay.MappedFile{}
	for i := range places {
		m := p.MappingAt(places[i].PC)
		if m != nil && strings.HasPrefix(m.Path, "/") {
			files[places[i].PC] = replay.MappedFile{Path: strings.TrimSuffix(m.Path, " (deleted)"), Base: m.Start - evidence.Addr(m.Offset)}
		}
	}
	return files
}

func (r *run) instructions() []evidence.Addr {
	list := slices.Clone(r.back)
	for pc := range r.at {
		list = append(list, pc)
	}
	slices.Sort(list)
	return list
}

// begin forgets what an earlier replay has found.
func (r *run) begin() {
	l := r.log
	l.Rows, l.Arrivals, l.Held, l.Undecided, l.Reason, l.Cut = nil, 0, 0, 0, evidence.Value{}, false
	l.Code = r.code.listed()
	r.code.end()
	for i := range l.Places {
		p := &l.Places[i]
		p.Hits, p.Missed, p.Left, p.Unreachable = 0, 0, 0, false
	}
	r.returns = newReturns(l)
	r.begun, r.calls, r.call = r.q.From == nil, 0, 0
	r.close()
}

// addBounds adds the hooks of the bounds, the first and the last of those at one event.
func (r *run) addBounds() {
	if from := r.q.From; from != nil {
		r.hooks = slices.Insert(r.hooks, 0, replay.Hook{At: *from, Do: func(*replay.Stopped) error {
			r.begun = true
			return nil
		}})
	}
	if until := r.q.Until; until != nil {
		r.hooks = append(r.hooks, replay.Hook{At: *until, Do: func(*replay.Stopped) error { return replay.ErrEnough }})
	}
}

// asksOf reports whether arrivals of a thread count now.
func (r *run) asksOf(thread uint32) bool {
	return r.begun && (r.q.Thread == 0 || r.q.Thread == thread)
}

func (r *run) close() {
	if r.process != nil {
		r.process.Close()
		r.process = nil
	}
	clear(r.asked)
	clear(r.frames)
	r.code.fileScope = nil
}

func (r *run) progress(done, total uint64) {
	if r.q.Progress != nil {
		r.q.Progress(Progress{Events: done, Total: total, Rows: int(r.rows.Load())})
	}
}

// stop is a stop of a thread, as expressions see it.
type stop struct {
	stopped *replay.Stopped
	memory  *memory
	regs    image.Registers
}

// observe opens the process for names and types, unless it is open with its present objects.
func (r *run) observe(s *replay.Stopped) (err error) {
	if r.process != nil && r.loads == s.Loads() {
		return nil
	}
	r.close()
	if r.process, err = s.KeepProcess(); err != nil {
		return err
	}
	r.loads, r.unwinder = s.Loads(), unwind.New(r.process)
	return nil
}

// open prepares the evaluation of expressions at a stop.
func (r *run) open(s *replay.Stopped) (*stop, error) {
	if err := r.observe(s); err != nil {
		return nil, err
	}
	x := &stop{stopped: s, memory: &memory{r.process, s}}
	var err error
	if x.regs, err = s.Registers(); err != nil {
		return nil, err
	}
	if x.regs.Vector, err = s.Vector(); err != nil {
		return nil, err
	}
	r.thread = image.Thread{Ref: evidence.ThreadRef{Number: int(s.Moment.Thread)}, Registers: x.regs}
	return x, nil
}

// arrived handles a thread at an instruction.
func (r *run) arrived(a *replay.Arrival) error {
	x, err := r.open(a.Stopped)
	if err != nil {
		return err
	}
	pc := a.Moment.PC
	if r.returns.at[pc] {
		if err := r.returnedTo(x, pc); err != nil {
			return err
		}
	}
	var frame *value.Frame
	var returning []int
	numbered := false
	for _, i := range r.at[pc] {
		if k := r.log.Places[i].Kind; !numbered && (k == KindCall || k == KindReturn) {
			numbered = true
			r.calls = a.Number()
		}
		if r.log.Places[i].Kind == KindReturn {
			returning = append(returning, i)
			continue
		}
		if r.call = 0; r.log.Places[i].Kind == KindCall {
			r.call = r.calls
		}
		if frame == nil {
			frame = r.frameAt(x.memory)
		}
		if r.log.Places[i].Kind == KindCode {
			if err := r.runCode(x, i, r.ask(i, pc), frame); err != nil {
				return err
			}
			continue
		}
		if err := r.reached(x, i, "", r.ask(i, pc), frame, nil); err != nil {
			return err
		}
	}
	if len(returning) > 0 {
		return r.called(a, x, returning)
	}
	return nil
}

// ask returns the expressions for a place.
func (r *run) ask(place int, pc evidence.Addr) *asked {
	key := askedKey{place, pc}
	a := r.asked[key]
	if a == nil {
		a = r.q.ask(r.process, &r.log.Places[place], pc)
		r.asked[key] = a
	}
	return a
}

// reached adds a row if the condition holds. ErrEnough: there are as many as were asked for.
func (r *run) reached(x *stop, place int, event string, a *asked, frame *value.Frame, result *resultScope) error {
	l := r.log
	if !r.asksOf(x.stopped.Moment.Thread) {
		return nil
	}
	l.Arrivals++
	l.Places[place].Hits++
	var scope expression.Scope
	if a.place != nil && frame != nil {
		scope = a.place.In(frame)
		if result != nil {
			result.Scope = scope
			scope = result
		}
	}
	if r.q.If != "" {
		holds, err := a.holds(scope)
		if err != nil {
			l.undecided(err)
			return nil
		}
		if !holds {
			return nil
		}
	}
	if !l.holds(r.q) {
		return nil
	}
	row := Row{Moment: x.stopped.Moment, Place: place, Event: event, Call: r.call}
	var err error
	if row.Position, err = x.stopped.Position(); err != nil {
		return err
	}
	if scope != nil {
		row.Values = a.evaluate(scope)
	} else {
		row.Values = a.without()
	}
	if r.q.Stack {
		row.Stack = r.stack(x)
	}
	return r.add(row)
}

// holds counts an arrival at which the condition held. It reports whether that has a row.
func (l *Log) holds(q *Question) bool {
	l.Held++
	return q.Most == 0 || len(l.Rows) < q.Most
}

// add adds a row. ErrEnough: there are as many as were asked for.
func (r *run) add(row Row) error {
	l := r.log
	l.Rows = append(l.Rows, row)
	r.rows.Store(int64(len(l.Rows)))
	if r.q.Most > 0 && len(l.Rows) == r.q.Most && !r.q.Verify {
		l.Cut = true
		return replay.ErrEnough
	}
	return nil
}

// undecided notes that the condition had no value.
func (l *Log) undecided(err error) {
	if l.Undecided++; l.Undecided == 1 {
		l.Reason = value.Missing(err)
	}
}

var errNoScope = errors.New("the code has no debug information here")

func (a *asked) holds(s expression.Scope) (bool, error) {
	switch {
	case s == nil && a.err != nil:
		return false, errors.New(bare(a.err))
	case s == nil:
		return false, errNoScope
	case a.condition == nil:
		return false, errors.New(bare(a.err))
	}
	return a.condition.True(s)
}

// without are the expressions where nothing can be evaluated.
func (a *asked) without() []evidence.Variable {
	why := errNoScope.Error()
	if a.err != nil {
		why = bare(a.err)
	}
	list := make([]evidence.Variable, 0, len(a.print))
	for _, x := range a.print {
		list = append(list, evidence.Variable{Name: x.name, Value: evidence.NoValue(why)})
	}
	return list
}

// mostFrames bounds the stack of a row.
const mostFrames = 64

// stack names the functions of the thread's stack, innermost first.
func (r *run) stack(x *stop) []string {
	var list []string
	r.unwinder.Visit(x.memory, &x.regs, mostFrames, func(f *unwind.Frame) bool {
		for _, c := range r.process.Symbolize(f.PC(), f.Lookup) {
			if len(list) < mostFrames {
				list = append(list, siteText(&c.Site))
			}
		}
		return true
	})
	return list
}
