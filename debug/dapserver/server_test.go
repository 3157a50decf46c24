package dapserver_test

import (
	"bufio"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-dap"

	"diagnose/debug"
	"diagnose/debug/dapserver"
	"diagnose/debug/debugtest"
	"diagnose/debug/mi"
	"diagnose/evidence"
	"diagnose/internal/recordtest"
)

func TestMain(m *testing.M) { recordtest.Main(m) }

// editor is a client.
type editor struct {
	t        *testing.T
	out      io.Writer
	seq      int
	messages chan dap.Message
	kept     []dap.Message
}

// open starts a server on a recording of a program of testdata, with one cause.
func open(t *testing.T, program string) *editor {
	source, err := filepath.Abs(filepath.Join("../testdata", program))
	if err != nil {
		t.Fatal(err)
	}
	served := debugtest.Serve(t, program, "gcc", "-O0")
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	s := &dapserver.Server{
		Ended:    "SIGSEGV",
		Left:     func() bool { return served.Session.Left() != nil },
		Warnings: "same place, other state",
		Start: func(on func(mi.Record)) (*mi.GDB, error) {
			return mi.Start(served.GDB, []string{"-nx", "-q", "-iex", "set mi-async on", "-iex", "set sysroot /", "-ex", "target remote " + served.Socket, served.Program}, on)
		},
		Causes: func(context.Context) ([]debug.Cause, error) {
			return []debug.Cause{{Summary: "a summary", Proof: evidence.Inferred, Steps: []debug.CauseStep{
				{Text: "a step", Proof: evidence.Inferred, Moment: evidence.Moment{Thread: 1, Ordinal: 2}, Site: &evidence.Site{File: source, Line: 33}}}}}, nil
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(context.WithoutCancel(t.Context()), in, out) }()
	e := &editor{t: t, out: toServer, messages: make(chan dap.Message, 1000)}
	go func() {
		r := bufio.NewReader(fromServer)
		for {
			m, err := dap.ReadProtocolMessage(r)
			if err != nil {
				return
			}
			e.messages <- m
		}
	}()
	t.Cleanup(func() {
		toServer.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := <-served.Ended; err != nil {
			t.Error(err)
		}
	})
	return e
}

// wait returns the first message for which is holds.
func (e *editor) wait(what string, is func(dap.Message) bool) dap.Message {
	e.t.Helper()
	if i := slices.IndexFunc(e.kept, is); i >= 0 {
		m := e.kept[i]
		e.kept = slices.Delete(e.kept, i, i+1)
		return m
	}
	deadline := time.After(time.Minute)
	for {
		select {
		case m := <-e.messages:
			if is(m) {
				return m
			}
			e.kept = append(e.kept, m)
		case <-deadline:
			e.t.Fatalf("no %s", what)
		}
	}
}

// ask sends a request and returns the answer.
func (e *editor) ask(r dap.RequestMessage, command string) dap.Message {
	e.t.Helper()
	e.seq++
	*r.GetRequest() = dap.Request{ProtocolMessage: dap.ProtocolMessage{Seq: e.seq, Type: "request"}, Command: command}
	if err := dap.WriteProtocolMessage(e.out, r); err != nil {
		e.t.Fatal(err)
	}
	return e.wait(command, func(m dap.Message) bool {
		x, is := m.(dap.ResponseMessage)
		return is && x.GetResponse().RequestSeq == e.seq
	})
}

func (e *editor) stopped() dap.StoppedEventBody {
	e.t.Helper()
	m := e.wait("stop", func(m dap.Message) bool { _, is := m.(*dap.StoppedEvent); return is })
	return m.(*dap.StoppedEvent).Body
}

func (e *editor) frames(thread int) []dap.StackFrame {
	e.t.Helper()
	m := e.ask(&dap.StackTraceRequest{Arguments: dap.StackTraceArguments{ThreadId: thread}}, "stackTrace")
	x, is := m.(*dap.StackTraceResponse)
	if !is || len(x.Body.StackFrames) == 0 {
		e.t.Fatalf("no frames: %#v", m)
	}
	return x.Body.StackFrames
}

// An editor opens a recording at the failure, goes back, and sees variables and the causes.
func TestEditor(t *testing.T) {
	e := open(t, "total.c")
	e.ask(&dap.InitializeRequest{}, "initialize")
	if m, is := e.ask(&dap.ThreadsRequest{}, "threads").(*dap.ErrorResponse); !is {
		t.Errorf("threads before launch: %#v", m)
	}
	e.ask(&dap.LaunchRequest{Arguments: []byte("{}")}, "launch")
	e.wait("initialized", func(m dap.Message) bool { _, is := m.(*dap.InitializedEvent); return is })
	b := e.ask(&dap.SetFunctionBreakpointsRequest{Arguments: dap.SetFunctionBreakpointsArguments{Breakpoints: []dap.FunctionBreakpoint{{Name: "add"}, {Name: "nothing_of_this_name"}}}}, "setFunctionBreakpoints")
	if x := b.(*dap.SetFunctionBreakpointsResponse).Body.Breakpoints; len(x) != 2 || !x[0].Verified || x[1].Verified {
		t.Errorf("breakpoints %+v", x)
	}
	e.ask(&dap.ConfigurationDoneRequest{}, "configurationDone")
	e.wait("warning", func(m dap.Message) bool {
		x, is := m.(*dap.OutputEvent)
		return is && x.Body.Category == "important" && x.Body.Output == "same place, other state"
	})
	stop := e.stopped()
	if f := e.frames(stop.ThreadId); stop.Reason != "exception" || stop.Description != "SIGSEGV" || f[0].Name != "main" || f[0].Line != 35 {
		t.Errorf("opened at %+v, %+v", stop, f[0])
	}
	e.ask(&dap.ReverseContinueRequest{Arguments: dap.ReverseContinueArguments{ThreadId: stop.ThreadId}}, "reverseContinue")
	if stop = e.stopped(); stop.Reason != "breakpoint" {
		t.Errorf("back at %+v", stop)
	}
	f := e.frames(stop.ThreadId)
	scopes := e.ask(&dap.ScopesRequest{Arguments: dap.ScopesArguments{FrameId: f[0].Id}}, "scopes").(*dap.ScopesResponse)
	v := e.ask(&dap.VariablesRequest{Arguments: dap.VariablesArguments{VariablesReference: scopes.Body.Scopes[0].VariablesReference}}, "variables").(*dap.VariablesResponse)
	if i := slices.IndexFunc(v.Body.Variables, func(v dap.Variable) bool { return v.Name == "a" && v.Value == "15" }); i < 0 {
		t.Errorf("variables %+v", v.Body.Variables)
	}
	e.ask(&dap.StepBackRequest{Arguments: dap.StepBackArguments{ThreadId: stop.ThreadId}}, "stepBack")
	e.stopped()
	x := e.ask(&dap.EvaluateRequest{Arguments: dap.EvaluateArguments{Expression: "monitor when", Context: "repl"}}, "evaluate")
	if r, is := x.(*dap.EvaluateResponse); !is || !strings.HasPrefix(r.Body.Result, "1:") {
		t.Errorf("when: %#v", x)
	}
	e.wait("causes", func(m dap.Message) bool { _, is := m.(*dap.ThreadEvent); return is })
	list := e.frames(1 << 20)
	if len(list) != 2 || list[1].Line != 33 || !strings.Contains(list[1].Name, "goto 1:2") {
		t.Errorf("causes %+v", list)
	}
	info := e.ask(&dap.ExceptionInfoRequest{Arguments: dap.ExceptionInfoArguments{ThreadId: stop.ThreadId}}, "exceptionInfo")
	if !strings.Contains(info.(*dap.ExceptionInfoResponse).Body.Description, "a summary") {
		t.Errorf("exception %#v", info)
	}
	e.ask(&dap.DisconnectRequest{}, "disconnect")
}

// evaluate executes a command in the editor's console.
func (e *editor) evaluate(command string) string {
	e.t.Helper()
	x := e.ask(&dap.EvaluateRequest{Arguments: dap.EvaluateArguments{Expression: command, Context: "repl"}}, "evaluate")
	r, is := x.(*dap.EvaluateResponse)
	if !is {
		e.t.Fatalf("%s: %#v", command, x)
	}
	return r.Body.Result
}

// breakAt sets the breakpoints on functions.
func (e *editor) breakAt(functions ...string) {
	e.t.Helper()
	var list []dap.FunctionBreakpoint
	for _, name := range functions {
		list = append(list, dap.FunctionBreakpoint{Name: name})
	}
	e.ask(&dap.SetFunctionBreakpointsRequest{Arguments: dap.SetFunctionBreakpointsArguments{Breakpoints: list}}, "setFunctionBreakpoints")
}

// The process leaves the recording by a command in the console. Its stops are an editor's like others, but have no causes.
func TestEditorLeaves(t *testing.T) {
	e := open(t, "left.c")
	e.ask(&dap.InitializeRequest{}, "initialize")
	e.ask(&dap.LaunchRequest{Arguments: []byte("{}")}, "launch")
	e.breakAt("check")
	e.ask(&dap.ConfigurationDoneRequest{}, "configurationDone")
	e.wait("causes", func(m dap.Message) bool { _, is := m.(*dap.ThreadEvent); return is })
	stop := e.stopped()
	e.ask(&dap.ReverseContinueRequest{Arguments: dap.ReverseContinueArguments{ThreadId: stop.ThreadId}}, "reverseContinue")
	e.stopped()
	e.evaluate("set var broken = 0")
	e.evaluate("set var wild = 1")
	if text := e.evaluate("monitor leave"); !strings.Contains(text, "no longer follows the recording") {
		t.Errorf("leave: %s", text)
	}
	e.breakAt("handle")
	e.ask(&dap.ContinueRequest{Arguments: dap.ContinueArguments{ThreadId: 1}}, "continue")
	if stop = e.stopped(); stop.Reason != "breakpoint" || stop.ThreadId == 1 || e.frames(stop.ThreadId)[0].Name != "handle" {
		t.Errorf("stopped at %+v", stop)
	}
	e.breakAt()
	e.ask(&dap.ContinueRequest{Arguments: dap.ContinueArguments{ThreadId: stop.ThreadId}}, "continue")
	if stop = e.stopped(); stop.Reason != "exception" || stop.Description != "SIGSEGV" || strings.Contains(stop.Text, "a summary") || e.frames(stop.ThreadId)[0].Name != "main" {
		t.Errorf("failed at %+v", stop)
	}
	info := e.ask(&dap.ExceptionInfoRequest{Arguments: dap.ExceptionInfoArguments{ThreadId: stop.ThreadId}}, "exceptionInfo")
	if x := info.(*dap.ExceptionInfoResponse).Body; !strings.Contains(x.Description, "has left the recording") {
		t.Errorf("exception %+v", x)
	}
	e.ask(&dap.StepBackRequest{Arguments: dap.StepBackArguments{ThreadId: stop.ThreadId}}, "stepBack")
	if stop = e.stopped(); stop.Reason != "step" || !strings.Contains(stop.Description, "has left the recording") {
		t.Errorf("back at %+v", stop)
	}
	e.evaluate("monitor discard")
	e.ask(&dap.ContinueRequest{Arguments: dap.ContinueArguments{ThreadId: stop.ThreadId}}, "continue")
	if stop = e.stopped(); e.frames(stop.ThreadId)[0].Name != "check" || e.evaluate("print broken") != "$1 = 1" {
		t.Errorf("returned to %+v", stop)
	}
	e.ask(&dap.ContinueRequest{Arguments: dap.ContinueArguments{ThreadId: stop.ThreadId}}, "continue")
	if stop = e.stopped(); stop.Reason != "exception" || !strings.Contains(stop.Text, "a summary") {
		t.Errorf("the end: %+v", stop)
	}
	e.ask(&dap.DisconnectRequest{}, "disconnect")
}
