package dapserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-dap"

	"diagnose/debug"
	"diagnose/debug/mi"
)

// heard handles gdb's output that is no result.
func (s *Server) heard(r mi.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := r.Kind == '~' || r.Kind == '@' // of gdb, or of its connection
	switch {
	case text && s.console != nil:
		s.console.WriteString(r.Text)
	case text && s.configured:
		s.say("console", r.Text)
	case r.Kind == '*' && r.Class == "running":
		s.ran()
	case r.Kind == '*' && r.Class == "stopped":
		s.stopped = r.Results
		switch {
		case s.answering:
			s.untold = true
		case s.configured:
			s.tellStop()
		}
	}
}

// ran notes that the program runs, and tells an editor that did not ask for it. The lock is held.
func (s *Server) ran() {
	s.stale = true
	if !s.configured || s.running {
		return
	}
	s.running = true
	thread, _ := strconv.Atoi(s.stopped.Text("thread-id"))
	s.send(&dap.ContinuedEvent{Event: event("continued"), Body: dap.ContinuedEventBody{ThreadId: thread, AllThreadsContinued: true}})
}

// say sends text to the editor's console.
func (s *Server) say(category, text string) {
	s.send(&dap.OutputEvent{Event: event("output"), Body: dap.OutputEventBody{Category: category, Output: text}})
}

// configure reports the stop at which the recording was opened.
func (s *Server) configure() {
	if s.Warnings != "" {
		s.say("important", s.Warnings)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configured = true
	if s.stopped != nil {
		s.tellStop()
	}
}

// tellStop reports a stop. The lock is held.
func (s *Server) tellStop() {
	first := !s.opened
	s.opened, s.running, s.untold = true, false, false
	x := &dap.StoppedEvent{Event: event("stopped")}
	x.Body.ThreadId, _ = strconv.Atoi(s.stopped.Text("thread-id"))
	x.Body.AllThreadsStopped = true
	signal := s.stopped.Text("signal-name")
	switch reason := s.stopped.Text("reason"); reason {
	case "breakpoint-hit":
		x.Body.Reason = "breakpoint"
		if n, err := strconv.Atoi(s.stopped.Text("bkptno")); err == nil {
			x.Body.HitBreakpointIds = []int{n}
		}
	case "watchpoint-trigger", "access-watchpoint-trigger":
		x.Body.Reason = "data breakpoint"
	case "signal-received":
		switch signal {
		case "SIGINT":
			x.Body.Reason = "pause"
		case "0":
			x.Body.Reason = "goto"
		default:
			s.exception(x, signal)
		}
	case "", "no-history": // gdb 13 gives no reason where the recording ends
		switch {
		case s.Left():
			x.Body.Reason, x.Body.Description = "step", "the process has left the recording, and does not continue here"
		case !first:
			x.Body.Reason, x.Body.Description = "step", "no more of the recording"
		case s.Ended != "":
			s.exception(x, s.Ended)
		default:
			x.Body.Reason = "entry"
		}
	default:
		x.Body.Reason = "step"
	}
	s.send(x)
}

func (s *Server) exception(x *dap.StoppedEvent, what string) {
	x.Body.Reason, x.Body.Description, x.Body.Text = "exception", what, what
	if s.Left() {
		x.Body.Text += ": " + ofNoCause
		return
	}
	if text := s.causesText(); text != "" {
		x.Body.Text += ": " + text
	}
}

// ofNoCause is told in place of the causes where the failure is not the recorded one.
const ofNoCause = "the process has left the recording, whose failure alone is diagnosed"

// diagnose finds the causes, and tells them when they are known.
func (s *Server) diagnose(ctx context.Context) {
	causes, err := s.Causes(ctx)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.causes, s.causesError, s.diagnosed = causes, err, true
	close(s.known)
	s.say("important", s.causesText()+"\n")
	if len(causes) > 0 {
		s.send(&dap.ThreadEvent{Event: event("thread"), Body: dap.ThreadEventBody{Reason: "started", ThreadId: causesThread}})
	}
}

// causesText has a line for each cause; empty: they are not known yet.
func (s *Server) causesText() string {
	switch {
	case !s.diagnosed:
		return ""
	case s.causesError != nil:
		return "the diagnosis failed: " + s.causesError.Error()
	case len(s.causes) == 0:
		return "no cause was found"
	}
	var lines []string
	for _, c := range s.causes {
		lines = append(lines, fmt.Sprintf("%s: %s", c.Proof, c.Summary))
	}
	return strings.Join(lines, "\n")
}

// mostPatience is how long the answer on an exception waits for the diagnosis.
const mostPatience = time.Minute

// exceptionInfo answers when the causes are known. Other requests are answered meanwhile.
func (s *Server) exceptionInfo(ctx context.Context, r *dap.ExceptionInfoRequest) {
	ctx, cancel := context.WithTimeout(ctx, mostPatience)
	go func() {
		defer cancel()
		if s.Causes != nil {
			select {
			case <-s.known:
			case <-ctx.Done():
			}
		}
		s.tellException(r)
	}()
}

func (s *Server) tellException(r *dap.ExceptionInfoRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &dap.ExceptionInfoResponse{Response: response(r)}
	x.Body = dap.ExceptionInfoResponseBody{ExceptionId: "failure", BreakMode: "always", Description: s.causesText()}
	if signal := s.stopped.Text("signal-name"); signal != "" {
		x.Body.ExceptionId = signal
	} else if s.Ended != "" {
		x.Body.ExceptionId = s.Ended
	}
	switch {
	case s.Left():
		x.Body.Description = ofNoCause
	case s.Causes == nil:
		x.Body.Description = "No diagnosis is available here."
	case !s.diagnosed:
		x.Body.Description = "The diagnosis is still running; the console will have its result."
	}
	s.send(x)
}

// causesThread is the number of a thread that the program does not have: its frames are the steps of the causes.
const causesThread = 1 << 20

// causeFrames are the steps of the causes as frames, which an editor shows and jumps to.
func (s *Server) causeFrames() []dap.StackFrame {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []dap.StackFrame
	for _, c := range s.causes {
		list = append(list, dap.StackFrame{Id: len(list) + 1, Name: fmt.Sprintf("%s: %s", c.Proof, c.Summary), PresentationHint: "label"})
		for i := range c.Steps {
			list = append(list, causeFrame(&c.Steps[i], len(list)+1))
		}
	}
	return list
}

func causeFrame(step *debug.CauseStep, id int) dap.StackFrame {
	f := dap.StackFrame{Id: id, Name: fmt.Sprintf("%s (%s)", step.Text, step.Proof)}
	if step.Moment.Thread != 0 {
		f.Name += "; goto " + step.Moment.String()
	}
	if x := step.Site; x != nil && x.File != "" {
		place(&f, x.File, x.Line)
	}
	return f
}
