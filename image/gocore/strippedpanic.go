package gocore

import (
	"bytes"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
)

// readFailure finds what ended the process.
func (s *stripped) readFailure() {
	failing := s.failingGoroutine()
	if failing == nil {
		s.readFatalError()
		return
	}
	g := s.recordOf(failing.ID)
	e, err := s.panicValue(g)
	if err != nil {
		s.limit("", "the panic cannot be read: "+err.Error())
		return
	}
	if e == nil {
		e = s.fatalError(&failing.Stack)
	}
	if e == nil {
		return
	}
	var signal *evidence.Signal
	if g.signal != 0 {
		signal = signalOf(uint64(g.signal))
		signal.Code = int(int32(g.signalCode))
		signal.Addr, signal.HasAddr = evidence.Addr(g.faultAddr), true
	}
	s.describe(e, signal)
}

// readFatalError is for a thread that failed without a goroutine, as the one
// does that finds all of them waiting.
func (s *stripped) readFatalError() {
	thread := s.process.FailingThread()
	if thread == nil {
		return
	}
	stack := s.stack(&goroutineRecord{}, &thread.Registers)
	if e := s.fatalError(&stack); e != nil {
		s.describe(e, nil)
	}
}

func (s *stripped) recordOf(id int64) *goroutineRecord {
	for i := range s.list {
		if int64(s.list[i].id) == id {
			return &s.list[i]
		}
	}
	return nil
}

// panicValue reads the value of the goroutine's innermost panic; nil without an
// error when it has none.
func (s *stripped) panicValue(g *goroutineRecord) (*evidence.Exception, error) {
	if g == nil || g.panicking == 0 {
		return nil, nil
	}
	at := g.panicking + evidence.Addr(s.layout.panicValue)
	kind, err := image.Uint64(s.memory, at)
	if err != nil {
		return nil, err
	}
	data, err := image.Uint64(s.memory, at+8)
	if err != nil || kind == 0 {
		return nil, err // runtime.Goexit has no value
	}
	t, err := s.typeAt(evidence.Addr(kind))
	if err != nil {
		return nil, err
	}
	e := &evidence.Exception{Proof: evidence.FromCore}
	if t.name != "string" {
		e.Type = t.name
	}
	e.What, err = s.shown(t, evidence.Addr(data))
	if err != nil {
		e.WhatUnavailable = err.Error()
	}
	nameRuntimeError(e)
	return e, nil
}

// fatalError finds the runtime's last message in the buffer that it keeps for
// debuggers (runtime/print.go, printBacklog). Without symbols, that is the only
// variable with such a text, so the statement is inferred.
func (s *stripped) fatalError(stack *evidence.Stack) *evidence.Exception {
	if !calls(stack, "runtime.throw", "runtime.fatal") {
		return nil
	}
	data, err := readArea(s.memory, s.table.Module.PointerFree)
	if err != nil {
		s.limit("", "the message of the fatal error cannot be read: "+err.Error())
		return nil
	}
	e := &evidence.Exception{Type: "fatal error", Proof: evidence.Inferred}
	mark := []byte("fatal error: ")
	at := bytes.Index(data, mark)
	if at < 0 || bytes.Count(data, mark) > 1 {
		e.WhatUnavailable = "the runtime's buffer of messages was not found"
		return e
	}
	text := data[at+len(mark):]
	end := bytes.IndexAny(text[:min(len(text), mostText)], "\n\x00")
	if end < 0 {
		e.WhatUnavailable = "the runtime's message has no end"
		return e
	}
	e.What = strings.ToValidUTF8(string(text[:end]), "\uFFFD")
	return e
}

func calls(stack *evidence.Stack, names ...string) bool {
	for i := range stack.Frames {
		for _, name := range names {
			if stack.Frames[i].Site.Function == name {
				return true
			}
		}
	}
	return false
}
