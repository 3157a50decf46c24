package transfer

import (
	"strings"

	"diagnose/image/x86"
)

// flagRows say which flags instructions write, leave undefined and read, by the manuals' letters: C, P,
// A, Z, S, O, D. kept: the flags keep their values where a count is 0. Intel SDM volume 1, appendix A,
// and volume 2.
var flagRows = []struct {
	written, undefined, read string
	kept                     bool
	ops                      string
}{
	{"CPAZSO", "", "", false, "add sub cmp neg xadd cmpxchg adcs " +
		"blsi blsr blsmsk bzhi bextr andn comiss comisd ucomiss ucomisd vcomiss vcomisd vucomiss vucomisd vcomish vucomish " +
		"ptest vptest vtestps vtestpd kortestb kortestw kortestd kortestq ktestb ktestw ktestd ktestq " +
		"pcmpistri pcmpistrm pcmpestri pcmpestrm vpcmpistri vpcmpistrm vpcmpestri vpcmpestrm " +
		"rdrand rdseed popcnt fcomi fcomip fucomi fucomip enqcmd enqcmds xtest testui " +
		"vcomxsd vcomxsh vcomxss vucomxsd vucomxsh vucomxss blcfill blci blcic blcmsk blcs blsfill blsic t1mskc tzmsk"},
	{"CPAZSO", "", "", true, "cmpsb cmpsw cmpsd cmpsq scasb scasw scasd scasq"},
	{"CPAZSO", "", "C", false, "adc sbb"},
	{"CPZSO", "A", "", false, "and or xor test"},
	{"PAZSO", "", "", false, "inc dec"},
	{"CPZSO", "A", "", true, "shl sal shr sar shld shrd"},
	{"CO", "", "", true, "rol ror"},
	{"CO", "", "C", true, "rcl rcr"},
	{"CO", "PAZS", "", false, "mul imul"},
	{"", "CPAZSO", "", false, "div idiv"},
	{"C", "PASO", "", false, "bt bts btr btc"},
	{"Z", "CPASO", "", false, "bsf bsr"},
	{"CZ", "PASO", "", false, "lzcnt tzcnt"},
	{"Z", "", "", false, "cmpxchg8b cmpxchg16b lar lsl verr verw"},
	{"CPAZS", "", "", false, "sahf"},
	{"CPAZSOD", "", "", false, "popf popfd popfq iret iretd iretq uiret"},
	{"C", "", "", false, "clc stc"},
	{"C", "", "C", false, "cmc adcx"},
	{"O", "", "O", false, "adox"},
	{"D", "", "", false, "cld std"},
	{"", "", "CPAZS", false, "lahf"},
	{"", "", "CPAZSOD", false, "pushf pushfd pushfq"},
	{"", "", "Z", false, "loope loopne"},
	{"", "", "C", false, "fcmovb fcmovnb"},
	{"", "", "Z", false, "fcmove fcmovne"},
	{"", "", "CZ", false, "fcmovbe fcmovnbe"},
	{"", "", "P", false, "fcmovu fcmovnu"},
	{"", "", "D", false, "movsb movsw movsd movsq stosb stosw stosd stosq lodsb lodsw lodsd lodsq insb insw insd outsb outsw outsd"},
}

// flagUse is a row for one mnemonic; each set has a bit per flag.
type flagUse struct {
	written, undefined, read uint8
	kept                     bool
}

const flagLetters = "CPAZSOD"

var flagUses = newFlagUses()

func newFlagUses() map[string]flagUse {
	m := map[string]flagUse{}
	for _, row := range flagRows {
		for op := range strings.FieldsSeq(row.ops) {
			m[op] = flagUse{parseFlags(row.written), parseFlags(row.undefined), parseFlags(row.read), row.kept}
		}
	}
	for condition, letters := range conditions {
		use := flagUse{read: parseFlags(letters)}
		for _, prefix := range []string{"j", "set", "cmov"} {
			m[prefix+condition] = use
		}
		m["cmp"+condition+"xadd"] = flagUse{written: 1<<allFlags - 1}
	}
	for _, op := range []string{"cmpsb", "cmpsw", "cmpsd", "cmpsq", "scasb", "scasw", "scasd", "scasq"} {
		use := m[op]
		use.read |= 1 << Direction
		m[op] = use
	}
	return m
}

func parseFlags(letters string) (set uint8) {
	for n := range flagLetters {
		if strings.IndexByte(letters, flagLetters[n]) >= 0 {
			set |= 1 << n
		}
	}
	return set
}

// conditions are the flags that the conditions of jumps, moves and sets read (SDM volume 1, appendix B).
var conditions = map[string]string{
	"a": "CZ", "ae": "C", "b": "C", "be": "CZ", "e": "Z", "g": "ZSO", "ge": "SO", "l": "SO", "le": "ZSO",
	"ne": "Z", "no": "O", "np": "P", "ns": "S", "o": "O", "p": "P", "s": "S",
	"nb": "C", "nbe": "CZ", "z": "Z", "nz": "Z", "nl": "SO", "nle": "ZSO",
}

// runs are the flags of a set, as few places as possible.
func runs(set uint8) (list []Place) {
	for n := 0; n < flags; n++ {
		first := n
		for n < flags && set&(1<<n) != 0 {
			n++
		}
		if n > first {
			list = append(list, flag(first, n-first))
		}
	}
	return list
}

// useOf is what an instruction does to the flags. Vector instructions share names with those of strings.
func useOf(inst *x86.Inst) flagUse {
	use := flagUses[inst.Op]
	for i := range inst.Operands {
		if o := &inst.Operands[i]; o.Reg == x86.RegVector && strings.HasSuffix(inst.Op, "sd") && !strings.Contains(inst.Op, "com") {
			return flagUse{} // movsd and cmpsd of vectors
		}
	}
	return use
}

// Condition returns what a conditional jump, move or set, or a loop instruction, reads to decide; nil for
// others.
func Condition(inst *x86.Inst) []Place {
	if inst.Flow != x86.FlowBranch && !strings.HasPrefix(inst.Op, "cmov") && !strings.HasPrefix(inst.Op, "set") {
		return nil
	}
	list := runs(useOf(inst).read)
	for n := range inst.Operands {
		if o := &inst.Operands[n]; inst.Flow == x86.FlowBranch && o.Access.Reads() {
			if p, ok := place(inst, n); ok {
				list = append(list, p)
			}
		}
	}
	return list
}

// flagBits are the positions of the flags in the flags register (SDM volume 1, 3.4.3).
var flagBits = [flags]uint{0, 2, 4, 6, 7, 11, 10}

// Holds reports whether the condition of a conditional jump, move or set holds with a value of the flags
// register; ok is false if op has no such condition.
func Holds(op string, register uint64) (holds, ok bool) {
	for _, prefix := range []string{"cmov", "set", "j"} {
		condition, found := strings.CutPrefix(op, prefix)
		if !found {
			continue
		}
		if _, ok := conditions[condition]; !ok {
			return false, false
		}
		return holdsOn(condition, func(n int) bool { return register>>flagBits[n]&1 != 0 }), true
	}
	return false, false
}

func holdsOn(condition string, set func(int) bool) bool {
	switch condition {
	case "a", "nbe":
		return !set(Carry) && !set(Zero)
	case "ae", "nb":
		return !set(Carry)
	case "b":
		return set(Carry)
	case "be":
		return set(Carry) || set(Zero)
	case "e", "z":
		return set(Zero)
	case "ne", "nz":
		return !set(Zero)
	case "g", "nle":
		return !set(Zero) && set(Sign) == set(Overflow)
	case "ge", "nl":
		return set(Sign) == set(Overflow)
	case "l":
		return set(Sign) != set(Overflow)
	case "le":
		return set(Zero) || set(Sign) != set(Overflow)
	case "o":
		return set(Overflow)
	case "no":
		return !set(Overflow)
	case "p":
		return set(Parity)
	case "np":
		return !set(Parity)
	case "s":
		return set(Sign)
	}
	return !set(Sign) // ns
}
