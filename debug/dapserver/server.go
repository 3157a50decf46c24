package dapserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/google/go-dap"

	"diagnose/debug"
	"diagnose/debug/mi"
)

// Server is a session with one editor.
type Server struct {
	// Start starts gdb, connected to the recording.
	Start func(on func(mi.Record)) (*mi.GDB, error)
	// Ended is how the program ended, if the recording is opened there, as in SIGSEGV; empty: it is opened elsewhere.
	Ended string
	// Warnings are lines that the editor's console shows first; empty: there are none.
	Warnings string
	// Causes diagnoses the recording; nil: it cannot be diagnosed here.
	Causes func(ctx context.Context) ([]debug.Cause, error)
	// Left reports whether the process has left the recording, so that its failures are not the recorded one; nil: it never has.
	Left func() bool

	out io.Writer
	gdb *mi.GDB
	// breakpoints are gdb's numbers of the breakpoints, by file, and of the watchpoints.
	breakpoints map[string][]string
	handles     handles
	over        bool
	// known is closed when the diagnosis has ended.
	known chan struct{}

	writing sync.Mutex
	seq     int

	// The rest is guarded by mu.
	mu sync.Mutex
	// configured: the editor has set its breakpoints, so stops are reported. stopped is the last stop.
	configured bool
	stopped    mi.Tuple
	// opened: a stop was reported. running: the editor knows that the program runs.
	opened, running bool
	// answering: the editor waits for the answer to a move. untold: a stop came meanwhile.
	answering, untold bool
	// stale: the program has run since the handles were given.
	stale bool
	// console collects gdb's text; nil: it goes to the editor.
	console *strings.Builder
	causes  []debug.Cause
	// diagnosed: causes are known, or causesError says why not.
	diagnosed   bool
	causesError error
}

// Serve answers an editor's requests until it disconnects.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s.out, s.breakpoints, s.known = out, map[string][]string{}, make(chan struct{})
	if s.Left == nil {
		s.Left = func() bool { return false }
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		if s.gdb != nil {
			s.gdb.Close()
		}
	}()
	r := bufio.NewReader(in)
	for !s.over {
		message, err := dap.ReadProtocolMessage(r)
		var unknown *dap.DecodeProtocolMessageFieldError
		switch {
		case errors.As(err, &unknown):
			s.refuse(unknown.Seq, unknown.FieldValue, "diagnose does not know this request")
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("dapserver: %w", err)
		}
		request, is := message.(dap.RequestMessage)
		if !is {
			continue
		}
		if err := s.answer(ctx, request); err != nil {
			s.refuse(request.GetRequest().Seq, request.GetRequest().Command, err.Error())
		}
	}
	return nil
}

// send writes a message. A lost connection ends Serve at the next read.
func (s *Server) send(m dap.Message) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.seq++
	switch x := m.(type) {
	case dap.ResponseMessage:
		x.GetResponse().Seq = s.seq
	case dap.EventMessage:
		x.GetEvent().Seq = s.seq
	}
	_ = dap.WriteProtocolMessage(s.out, m)
}

// refuse answers a request that failed.
func (s *Server) refuse(seq int, command, why string) {
	x := &dap.ErrorResponse{Response: dap.Response{RequestSeq: seq, Command: command, Message: why}}
	x.Type = "response"
	x.Body.Error = &dap.ErrorMessage{Id: 1, Format: "{why}", Variables: map[string]string{"why": why}, ShowUser: true}
	s.send(x)
}

// response begins the answer to a request.
func response(r dap.RequestMessage) dap.Response {
	return dap.Response{ProtocolMessage: dap.ProtocolMessage{Type: "response"}, RequestSeq: r.GetRequest().Seq, Command: r.GetRequest().Command, Success: true}
}

func event(name string) dap.Event {
	return dap.Event{ProtocolMessage: dap.ProtocolMessage{Type: "event"}, Event: name}
}

// answer answers a request.
func (s *Server) answer(ctx context.Context, request dap.RequestMessage) error {
	switch r := request.(type) {
	case *dap.InitializeRequest:
		x := &dap.InitializeResponse{Response: response(r)}
		x.Body = dap.Capabilities{SupportsConfigurationDoneRequest: true, SupportsConditionalBreakpoints: true, SupportsEvaluateForHovers: true,
			SupportsStepBack: true, SupportsExceptionInfoRequest: true, SupportsTerminateRequest: true, SupportsFunctionBreakpoints: true,
			SupportsDataBreakpoints: true, SupportsDelayedStackTraceLoading: true}
		s.send(x)
		return nil
	case *dap.LaunchRequest:
		return s.start(ctx, &dap.LaunchResponse{Response: response(r)})
	case *dap.AttachRequest:
		return s.start(ctx, &dap.AttachResponse{Response: response(r)})
	case *dap.DisconnectRequest:
		s.over = true
		s.send(&dap.DisconnectResponse{Response: response(r)})
		return nil
	case *dap.TerminateRequest:
		s.send(&dap.TerminateResponse{Response: response(r)})
		s.send(&dap.TerminatedEvent{Event: event("terminated")})
		return nil
	}
	if s.gdb == nil {
		return errors.New("the recording is not open: 'launch' comes first")
	}
	s.forget()
	switch r := request.(type) {
	case *dap.SetBreakpointsRequest:
		return s.setBreakpoints(r)
	case *dap.SetFunctionBreakpointsRequest:
		return s.setFunctionBreakpoints(r)
	case *dap.DataBreakpointInfoRequest:
		return s.dataBreakpointInfo(r)
	case *dap.SetDataBreakpointsRequest:
		return s.setDataBreakpoints(r)
	case *dap.SetExceptionBreakpointsRequest:
		s.send(&dap.SetExceptionBreakpointsResponse{Response: response(r)})
		return nil
	case *dap.ConfigurationDoneRequest:
		s.send(&dap.ConfigurationDoneResponse{Response: response(r)})
		s.configure()
		return nil
	case *dap.ThreadsRequest:
		return s.threads(r)
	case *dap.StackTraceRequest:
		return s.stackTrace(r)
	case *dap.ScopesRequest:
		return s.scopes(r)
	case *dap.VariablesRequest:
		return s.variables(r)
	case *dap.EvaluateRequest:
		return s.evaluate(r)
	case *dap.ExceptionInfoRequest:
		s.exceptionInfo(ctx, r)
		return nil
	}
	return s.move(request)
}

// start starts gdb and the diagnosis.
func (s *Server) start(ctx context.Context, answer dap.Message) error {
	if s.gdb != nil {
		return errors.New("the recording is open already")
	}
	gdb, err := s.Start(s.heard)
	if err != nil {
		return err
	}
	s.gdb = gdb
	s.send(answer)
	s.send(&dap.InitializedEvent{Event: event("initialized")})
	if s.Causes != nil {
		go s.diagnose(ctx)
	}
	return nil
}

// move answers the requests that resume the program.
func (s *Server) move(request dap.RequestMessage) error {
	var answer dap.Message
	command, thread := "", 0
	switch r := request.(type) {
	case *dap.ContinueRequest:
		answer, command = &dap.ContinueResponse{Response: response(r), Body: dap.ContinueResponseBody{AllThreadsContinued: true}}, "-exec-continue"
	case *dap.ReverseContinueRequest:
		answer, command = &dap.ReverseContinueResponse{Response: response(r)}, "-exec-continue --reverse"
	case *dap.NextRequest:
		answer, command, thread = &dap.NextResponse{Response: response(r)}, "-exec-next", r.Arguments.ThreadId
	case *dap.StepInRequest:
		answer, command, thread = &dap.StepInResponse{Response: response(r)}, "-exec-step", r.Arguments.ThreadId
	case *dap.StepOutRequest:
		answer, command, thread = &dap.StepOutResponse{Response: response(r)}, "-exec-finish", r.Arguments.ThreadId
	case *dap.StepBackRequest:
		answer, command, thread = &dap.StepBackResponse{Response: response(r)}, "-exec-next --reverse", r.Arguments.ThreadId
	case *dap.PauseRequest:
		answer, command = &dap.PauseResponse{Response: response(r)}, "-exec-interrupt"
	default:
		return errors.New("diagnose does not support this request")
	}
	if thread == causesThread {
		return errors.New("the causes are no thread of the program")
	}
	if thread != 0 {
		command = strings.Replace(command, " ", fmt.Sprintf(" --thread %d ", thread), 1)
		if !strings.Contains(command, "--thread") {
			command += fmt.Sprintf(" --thread %d", thread)
		}
	}
	_, pauses := request.(*dap.PauseRequest)
	return s.resume(command, answer, pauses)
}

// resume sends a command that makes the program run or, if it pauses, stop. The answer comes before the stop.
func (s *Server) resume(command string, answer dap.Message, pauses bool) error {
	s.mu.Lock()
	s.answering = true
	s.running = s.running || !pauses
	s.mu.Unlock()
	_, err := s.gdb.Send(command)
	if err == nil {
		s.send(answer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answering = false
	switch {
	case s.untold:
		s.tellStop()
	case err != nil && !pauses:
		s.running = false
	}
	return err
}
