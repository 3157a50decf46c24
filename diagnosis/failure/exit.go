package failure

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
)

// exited judges a thread that ended its process with a status. It failed where the program called
// exit. After main has returned, main has no frame any more.
func (j *judge) exited(f *evidence.Failure, in *Input) {
	f.Kind, f.Status, f.Instruction = evidence.ExitStatus, *in.Exit, nil
	if names := j.stack.functions(); cxxTerminating(names) { // a handler of std::terminate
		j.terminate(f, names)
		f.Site = j.stack.site()
		return
	}
	f.Site = j.stack.site()
	if !j.stack.mainReturned() {
		return
	}
	f.Message, f.Site = evidence.Say("main returned it"), nil
	if main, ok := j.process.SymbolNamed("main"); ok {
		calls := in.Process.Symbolize(main.Addr, image.AtInstruction)
		site := calls[len(calls)-1].Site
		site.File, site.Line, site.Column = "", 0, 0 // the line that returned is not known
		f.Site = &site
	}
}

// mainReturned reports whether exit was called by the C library's start code
// (glibc, sysdeps/nptl/libc_start_call_main.h).
func (k *callStack) mainReturned() bool {
	for _, site := range k.sites() {
		switch name := image.CanonicalName(site.Function); {
		case name == "exit" || name == "_exit" || name == "_Exit" || strings.HasPrefix(name, "__run_exit_handlers"):
		default:
			return strings.HasPrefix(name, "__libc_start")
		}
	}
	return false
}

func exitPhrase(f *evidence.Failure) (head, tail string) {
	return fmt.Sprintf("exit with status %d", f.Status), message(f)
}
