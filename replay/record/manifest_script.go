package record

import "slices"

// Execve returns what to hand to execve(2) so that the process begins as this
// one did. The kernel has put a script's interpreter and the script's name, as
// it was executed, in the place of args[0] (binfmt_script.c); what that was is
// lost, and nobody saw it.
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
