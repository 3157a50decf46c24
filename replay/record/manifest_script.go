package record

import "slices"

// Execve returns the arguments for execve(2) that start the process as it was started. The
// kernel replaced args[0] of a script by its interpreter and the script's name, as it was
// executed (binfmt_script.c). The original args[0] is lost, but the program did not see it
// either.
func (p *Program) Execve() (path string, args []string) {
	args = Strings(p.Args)
	if p.Executed == "" {
		return string(p.Path), args
	}
	if p.Script {
		if i := slices.Index(args, string(p.Executed)); i > 0 {
			args = args[i:]
		}
	}
	return string(p.Executed), args
}
