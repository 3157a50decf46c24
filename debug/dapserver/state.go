package dapserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/go-dap"

	"diagnose/debug/mi"
)

// handles are the numbers that an editor has for frames and variables until the program resumes.
type handles struct {
	frames []frame
	values []values
	// objects are gdb's variable objects that were made.
	objects []string
}

// frame is a frame of a thread, by gdb's numbers.
type frame struct{ thread, level int }

// where are the options for a command of gdb in the frame; nil: where gdb is.
func (f *frame) where() string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf(" --thread %d --frame %d", f.thread, f.level)
}

// values are what a variables reference stands for: the locals of a frame, or, if object is set, the members of that one of
// gdb's variable objects.
type values struct {
	frame  *frame // nil: gdb's own
	object string
	// members are gdb's names of those that were shown.
	members map[string]string
}

const (
	// mostFrames and mostVariables bound an answer.
	mostFrames    = 1000
	mostVariables = 1000
)

// forget forgets the handles that were given before the program ran.
func (s *Server) forget() {
	s.mu.Lock()
	stale := s.stale
	s.stale = false
	s.mu.Unlock()
	if !stale {
		return
	}
	for _, name := range s.handles.objects {
		_, _ = s.gdb.Send("-var-delete " + name) // one that is kept only takes memory
	}
	s.handles = handles{}
}

// place sets a frame's line, or names the line where the file is not here.
func place(f *dap.StackFrame, path string, line int) {
	if path = filepath.Clean(path); isFile(path) {
		f.Source, f.Line = &dap.Source{Name: filepath.Base(path), Path: path}, line
		return
	}
	f.Name += fmt.Sprintf(" (%s:%d)", filepath.Base(path), line)
	f.PresentationHint = "subtle"
}

func isFile(path string) bool {
	x, err := os.Stat(path)
	return err == nil && x.Mode().IsRegular() && filepath.IsAbs(path)
}

func (s *Server) threads(r *dap.ThreadsRequest) error {
	info, err := s.gdb.Send("-thread-info")
	if err != nil {
		return err
	}
	x := &dap.ThreadsResponse{Response: response(r)}
	x.Body.Threads = []dap.Thread{}
	for _, t := range info.Tuples("threads") {
		id, err := strconv.Atoi(t.Text("id"))
		if err != nil {
			continue
		}
		x.Body.Threads = append(x.Body.Threads, dap.Thread{Id: id, Name: strings.TrimSpace(t.Text("target-id") + " " + t.Text("name"))})
	}
	if len(s.causeFrames()) > 0 {
		x.Body.Threads = append(x.Body.Threads, dap.Thread{Id: causesThread, Name: "causes"})
	}
	s.send(x)
	return nil
}

func (s *Server) stackTrace(r *dap.StackTraceRequest) error {
	x := &dap.StackTraceResponse{Response: response(r)}
	first := max(r.Arguments.StartFrame, 0)
	if r.Arguments.ThreadId == causesThread {
		list := s.causeFrames()
		x.Body.TotalFrames = len(list)
		x.Body.StackFrames = list[min(first, len(list)):]
		s.send(x)
		return nil
	}
	most := r.Arguments.Levels
	if most <= 0 || most > mostFrames {
		most = mostFrames
	}
	// One more than asked for shows that there are more.
	info, err := s.gdb.Send(fmt.Sprintf("-stack-info-depth --thread %d %d", r.Arguments.ThreadId, first+most+1))
	if err != nil {
		return err
	}
	x.Body.TotalFrames, _ = strconv.Atoi(info.Text("depth"))
	x.Body.StackFrames = []dap.StackFrame{}
	if first >= x.Body.TotalFrames {
		s.send(x)
		return nil
	}
	info, err = s.gdb.Send(fmt.Sprintf("-stack-list-frames --thread %d %d %d", r.Arguments.ThreadId, first, first+most-1))
	if err != nil {
		return err
	}
	for _, f := range info.Tuples("stack") {
		level, _ := strconv.Atoi(f.Text("level"))
		s.handles.frames = append(s.handles.frames, frame{r.Arguments.ThreadId, level})
		y := dap.StackFrame{Id: firstFrame + len(s.handles.frames), Name: f.Text("func"), InstructionPointerReference: f.Text("addr")}
		if y.Name == "" {
			y.Name = f.Text("addr")
		}
		if path := f.Text("fullname"); path != "" {
			line, _ := strconv.Atoi(f.Text("line"))
			place(&y, path, line)
		}
		x.Body.StackFrames = append(x.Body.StackFrames, y)
	}
	s.send(x)
	return nil
}

// firstFrame is before the identifiers of frames; those of the causes are below it.
const firstFrame = 1 << 20

func (s *Server) frameOf(id int) (*frame, error) {
	if n := id - firstFrame - 1; n >= 0 && n < len(s.handles.frames) {
		return &s.handles.frames[n], nil
	}
	return nil, errors.New("this is no frame of the program where it is stopped now")
}

func (s *Server) scopes(r *dap.ScopesRequest) error {
	x := &dap.ScopesResponse{Response: response(r)}
	x.Body.Scopes = []dap.Scope{}
	if f, err := s.frameOf(r.Arguments.FrameId); err == nil {
		x.Body.Scopes = append(x.Body.Scopes, dap.Scope{Name: "Locals", PresentationHint: "locals", VariablesReference: s.reference(values{frame: f})})
	} else if r.Arguments.FrameId > firstFrame {
		return err
	}
	s.send(x)
	return nil
}

// reference makes a variables reference.
func (s *Server) reference(v values) int {
	s.handles.values = append(s.handles.values, v)
	return len(s.handles.values)
}

func (s *Server) variables(r *dap.VariablesRequest) error {
	n := r.Arguments.VariablesReference
	if n < 1 || n > len(s.handles.values) {
		return errors.New("this variable is of another stop")
	}
	x := &dap.VariablesResponse{Response: response(r)}
	var err error
	if v := s.handles.values[n-1]; v.object == "" {
		x.Body.Variables, err = s.locals(v.frame)
	} else {
		x.Body.Variables, err = s.members(n)
	}
	if err != nil {
		return err
	}
	s.send(x)
	return nil
}

func (s *Server) locals(f *frame) ([]dap.Variable, error) {
	info, err := s.gdb.Send(fmt.Sprintf("-stack-list-variables --thread %d --frame %d --simple-values", f.thread, f.level))
	if err != nil {
		return nil, err
	}
	list := []dap.Variable{}
	for _, v := range info.Tuples("variables") {
		if len(list) == mostVariables {
			break
		}
		name := v.Text("name")
		y, err := s.object(f, name)
		if err != nil {
			y = dap.Variable{Value: "<" + err.Error() + ">", Type: v.Text("type")}
		}
		y.Name, y.EvaluateName = name, name
		list = append(list, y)
	}
	return list, nil
}

// object makes one of gdb's variable objects of an expression.
func (s *Server) object(f *frame, expression string) (dap.Variable, error) {
	info, err := s.gdb.Send("-var-create"+f.where()+" - *", expression)
	if err != nil {
		return dap.Variable{}, err
	}
	s.handles.objects = append(s.handles.objects, info.Text("name"))
	return s.variable(f, info), nil
}

func (s *Server) variable(f *frame, info mi.Tuple) dap.Variable {
	v := dap.Variable{Value: info.Text("value"), Type: info.Text("type")}
	children, _ := strconv.Atoi(info.Text("numchild"))
	if children > 0 || info.Text("dynamic") != "" {
		v.VariablesReference = s.reference(values{frame: f, object: info.Text("name"), members: map[string]string{}})
	}
	return v
}

func (s *Server) members(reference int) ([]dap.Variable, error) {
	of := s.handles.values[reference-1]
	info, err := s.gdb.Send(fmt.Sprintf("-var-list-children --all-values %s 0 %d", of.object, mostVariables))
	if err != nil {
		return nil, err
	}
	list := []dap.Variable{}
	for _, child := range info.Tuples("children") {
		v := s.variable(of.frame, child)
		v.Name = child.Text("exp")
		of.members[v.Name] = child.Text("name")
		list = append(list, v)
	}
	return list, nil
}

// evaluate evaluates an expression, or executes a command of gdb in the editor's console.
func (s *Server) evaluate(r *dap.EvaluateRequest) error {
	x := &dap.EvaluateResponse{Response: response(r)}
	f, err := s.frameOf(r.Arguments.FrameId)
	if err != nil && r.Arguments.FrameId != 0 && r.Arguments.FrameId > firstFrame {
		return err
	}
	if r.Arguments.Context == "repl" {
		x.Body.Result, err = s.execute(f, r.Arguments.Expression)
	} else {
		var v dap.Variable
		v, err = s.object(f, r.Arguments.Expression)
		x.Body.Result, x.Body.Type, x.Body.VariablesReference = v.Value, v.Type, v.VariablesReference
	}
	if err != nil {
		return err
	}
	s.send(x)
	return nil
}

// execute executes a command of gdb and returns what gdb prints until it is done or the program runs.
func (s *Server) execute(f *frame, command string) (string, error) {
	var out strings.Builder
	s.mu.Lock()
	s.console = &out
	s.mu.Unlock()
	_, err := s.gdb.Send("-interpreter-exec"+f.where()+" console", command)
	s.mu.Lock()
	s.console = nil
	s.mu.Unlock()
	return strings.TrimSuffix(out.String(), "\n"), err
}
