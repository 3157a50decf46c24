package failure

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
)

// exited judges a thread that ended its process with a status. It failed where the program called
// exit. After main has returned, main has no frame any more.
func (s *scene) exited(f *evidence.Failure, in *Input) {
	f.Kind, f.Status, f.Instruction = evidence.ExitStatus, *in.Exit, nil
	if names := s.functions(); cxxTerminating(names) { // a handler of std::terminate
		s.terminate(f, names)
		f.Site = s.site()
		return
	}
	f.Site = s.site()
	if !s.mainReturned() {
		return
	}
	f.Message, f.Site = "main returned it", nil
	if main, ok := s.SymbolNamed("main"); ok {
		calls := in.Process.Symbolize(main.Addr, image.AtInstruction)
		site := calls[len(calls)-1].Site
		site.File, site.Line, site.Column = "", 0, 0 // where it returned is not known
		f.Site = &site
	}
}

// mainReturned reports whether exit was called by the C library's start code
// (glibc, sysdeps/nptl/libc_start_call_main.h).
func (s *scene) mainReturned() bool {
	for _, site := range s.sites() {
		switch name := image.CanonicalName(site.Function); {
		case name == "exit" || name == "_exit" || name == "_Exit" || strings.HasPrefix(name, "__run_exit_handlers"):
		default:
			return strings.HasPrefix(name, "__libc_start")
		}
	}
	return false
}

func exitPhrase(f *evidence.Failure) (head, tail string) {
	return fmt.Sprintf("exit with status %d", f.Status), f.Message
}
