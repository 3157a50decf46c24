package dapserver

import (
	"fmt"
	"strconv"

	"github.com/google/go-dap"
)

// setBreakpoints replaces the breakpoints of a file.
func (s *Server) setBreakpoints(r *dap.SetBreakpointsRequest) error {
	x := &dap.SetBreakpointsResponse{Response: response(r)}
	path := r.Arguments.Source.Path
	s.remove(path)
	x.Body.Breakpoints = []dap.Breakpoint{}
	for _, b := range r.Arguments.Breakpoints {
		x.Body.Breakpoints = append(x.Body.Breakpoints, s.insert(path, fmt.Sprintf("%s:%d", path, b.Line), b.Condition))
	}
	s.send(x)
	return nil
}

func (s *Server) setFunctionBreakpoints(r *dap.SetFunctionBreakpointsRequest) error {
	x := &dap.SetFunctionBreakpointsResponse{Response: response(r)}
	const functions = "" // no file has this path
	s.remove(functions)
	x.Body.Breakpoints = []dap.Breakpoint{}
	for _, b := range r.Arguments.Breakpoints {
		x.Body.Breakpoints = append(x.Body.Breakpoints, s.insert(functions, b.Name, b.Condition))
	}
	s.send(x)
	return nil
}

// remove removes the breakpoints of a file.
func (s *Server) remove(path string) {
	for _, number := range s.breakpoints[path] {
		_, _ = s.gdb.Send("-break-delete " + number) // the user may have deleted it in the console
	}
	delete(s.breakpoints, path)
}

func (s *Server) insert(path, location, condition string) dap.Breakpoint {
	command := "-break-insert"
	parameters := []string{location}
	if condition != "" {
		command += " -c"
		parameters = []string{condition, location}
	}
	info, err := s.gdb.Send(command, parameters...)
	if err != nil {
		return dap.Breakpoint{Message: err.Error()}
	}
	b := info.Tuple("bkpt")
	number := b.Text("number")
	s.breakpoints[path] = append(s.breakpoints[path], number)
	id, _ := strconv.Atoi(number)
	line, _ := strconv.Atoi(b.Text("line"))
	return dap.Breakpoint{Id: id, Verified: true, Line: line}
}
