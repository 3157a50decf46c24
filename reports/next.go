package reports

import (
	"cmp"
	"strings"

	"diagnose/evidence"
)

// nextReasons say why a step would tell more.
var nextReasons = map[evidence.NextReason]string{
	evidence.NextForValue: "replays of the recording follow the bad value to the instruction that made it",
	evidence.NextForOrder: "keeps a run that passes and one that fails; with both, orders of accesses can be compared",
	evidence.NextForLocks: "searches the orders of threads, and keeps a recording of one that fails",
	evidence.NextForHeap:  "with the agent's heap the report names the object, and who allocated and freed it",
}

// nextCommands begin the command lines.
var nextCommands = map[evidence.NextTool]string{
	evidence.NextRecord: "diagnose record --", evidence.NextRepeat: "diagnose record --repeat 100 --until-fail --",
	evidence.NextHunt: "diagnose hunt --", evidence.NextRun: "diagnose run --",
}

// nextNeeds are what to do with the program first.
var nextNeeds = map[evidence.NextNeed]string{
	evidence.NeedDynamicLinking: "link the program dynamically (without -static, -static-pie or +crt-static), and with glibc; then ",
	evidence.NeedGlibc:          "link the program with glibc, not musl; then ",
}

// next is the command that would tell more.
func next(c *evidence.Case) []block {
	if c.Next == nil || nextCommands[c.Next.Tool] == "" {
		return nil
	}
	command := line{}.and(plain, nextNeeds[c.Next.Need]).and(strong, nextCommands[c.Next.Tool]+" "+commandLine(&c.Program))
	return []block{heading{text: "To learn more"}, facts{{"next", command.and(plain, "  # "+nextReasons[c.Next.Reason])}}}
}

// commandLine is the program's command line, as far as the kernel keeps it: 79 bytes, in which a space may be one of an argument
// (fs/binfmt_elf.c, fill_psinfo). ARGUMENTS stands for the unknown part.
func commandLine(p *evidence.Program) string {
	const most, special = 79, "|&;<>()$`\\\"'*?[]#~{}\n\t"
	if p.Args != "" && len(p.Args) < most && !strings.ContainsAny(p.Args, special) {
		return p.Args
	}
	return cmp.Or(p.Exe, p.Command, "PROGRAM") + " ARGUMENTS"
}
