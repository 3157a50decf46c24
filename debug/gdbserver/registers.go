package gdbserver

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// register is a register of the target description, in its order.
type register struct {
	name, kind, group string
	bits              int
	// general is its index in struct user_regs_struct (sys/user.h), if it is one of those; -1: extended is its
	// offset in the XSAVE area.
	general, extended int
}

// feature is a feature of gdb's target descriptions ("i386 Features" in its manual).
type feature struct {
	name      string
	types     string
	registers []register
}

const (
	flagsType = `<flags id="i386_eflags" size="4"><field name="CF" start="0" end="0"/><field name="PF" start="2" end="2"/>` +
		`<field name="AF" start="4" end="4"/><field name="ZF" start="6" end="6"/><field name="SF" start="7" end="7"/>` +
		`<field name="TF" start="8" end="8"/><field name="IF" start="9" end="9"/><field name="DF" start="10" end="10"/>` +
		`<field name="OF" start="11" end="11"/></flags>`
	vectorTypes = `<vector id="v4f" type="ieee_single" count="4"/><vector id="v2d" type="ieee_double" count="2"/>` +
		`<vector id="v16i8" type="int8" count="16"/><vector id="v8i16" type="int16" count="8"/>` +
		`<vector id="v4i32" type="int32" count="4"/><vector id="v2i64" type="int64" count="2"/>` +
		`<union id="vec128"><field name="v4_float" type="v4f"/><field name="v2_double" type="v2d"/>` +
		`<field name="v16_int8" type="v16i8"/><field name="v8_int16" type="v8i16"/><field name="v4_int32" type="v4i32"/>` +
		`<field name="v2_int64" type="v2i64"/><field name="uint128" type="uint128"/></union>`
)

// Offsets in the XSAVE area (Intel SDM volume 1, 13.4): of the legacy area (10.5.1), the header, and the upper halves of the
// YMM registers.
const (
	offsetMXCSR  = 24
	offsetST     = 32
	offsetXMM    = 160
	offsetXCR0   = 464 // where the kernel keeps XCR0 (arch/x86/include/uapi/asm/sigcontext.h)
	offsetStates = 512 // XSTATE_BV
	offsetYMM    = 576
	stateX87     = 1
	stateSSE     = 2
	stateAVX     = 4
)

// indices in struct user_regs_struct (sys/user.h).
const (
	indexRIP = 16
	indexRSP = 19
	indexRBP = 4
)

// describe returns the features of a processor; avx: with YMM registers.
func describe(avx bool) []feature {
	core := feature{name: "org.gnu.gdb.i386.core", types: flagsType}
	general := func(name, kind string, bits, index int) {
		core.registers = append(core.registers, register{name: name, kind: kind, bits: bits, general: index})
	}
	for _, x := range []struct {
		name  string
		index int
	}{{"rax", 10}, {"rbx", 5}, {"rcx", 11}, {"rdx", 12}, {"rsi", 13}, {"rdi", 14}} {
		general(x.name, "int64", 64, x.index)
	}
	general("rbp", "data_ptr", 64, indexRBP)
	general("rsp", "data_ptr", 64, indexRSP)
	for i, index := range []int{9, 8, 7, 6, 3, 2, 1, 0} {
		general(fmt.Sprintf("r%d", 8+i), "int64", 64, index)
	}
	general("rip", "code_ptr", 64, indexRIP)
	general("eflags", "i386_eflags", 32, 18)
	for i, name := range []string{"cs", "ss", "ds", "es", "fs", "gs"} {
		general(name, "int32", 32, []int{17, 20, 23, 24, 25, 26}[i])
	}
	for i := range 8 {
		core.registers = append(core.registers, register{name: fmt.Sprintf("st%d", i), kind: "i387_ext", bits: 80, general: -1, extended: offsetST + 16*i})
	}
	// FCW, FSW, the tag word, and the addresses of the last instruction and operand.
	for i, name := range []string{"fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop"} {
		core.registers = append(core.registers, register{name: name, kind: "int", group: "float", bits: 32, general: -1, extended: []int{0, 2, 4, 12, 8, 20, 16, 6}[i]})
	}
	sse := feature{name: "org.gnu.gdb.i386.sse", types: vectorTypes}
	for i := range 16 {
		sse.registers = append(sse.registers, register{name: fmt.Sprintf("xmm%d", i), kind: "vec128", bits: 128, general: -1, extended: offsetXMM + 16*i})
	}
	sse.registers = append(sse.registers, register{name: "mxcsr", kind: "int", group: "vector", bits: 32, general: -1, extended: offsetMXCSR})
	list := []feature{core, sse,
		{name: "org.gnu.gdb.i386.linux", registers: []register{{name: "orig_rax", kind: "int", group: "system", bits: 64, general: 15}}},
		{name: "org.gnu.gdb.i386.segments", registers: []register{{name: "fs_base", kind: "int", bits: 64, general: 21}, {name: "gs_base", kind: "int", bits: 64, general: 22}}}}
	if avx {
		ymm := feature{name: "org.gnu.gdb.i386.avx"}
		for i := range 16 {
			ymm.registers = append(ymm.registers, register{name: fmt.Sprintf("ymm%dh", i), kind: "uint128", bits: 128, general: -1, extended: offsetYMM + 16*i})
		}
		list = append(list, ymm)
	}
	return list
}

// hasAVX reports whether an XSAVE area has the YMM registers.
func hasAVX(extended []byte) bool {
	return len(extended) >= offsetYMM+16*16 && binary.LittleEndian.Uint64(extended[offsetXCR0:])&stateAVX != 0
}

// targetXML is the target description.
func targetXML(features []feature) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target version="1.0">` +
		`<architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>`)
	for _, f := range features {
		fmt.Fprintf(&b, `<feature name="%s">%s`, f.name, f.types)
		for _, r := range f.registers {
			group := ""
			if r.group != "" {
				group = fmt.Sprintf(` group="%s"`, r.group)
			}
			fmt.Fprintf(&b, `<reg name="%s" bitsize="%d" type="%s"%s/>`, r.name, r.bits, r.kind, group)
		}
		b.WriteString(`</feature>`)
	}
	b.WriteString(`</target>`)
	return b.String()
}

// registerFile is a thread's registers.
type registerFile struct{ general, extended []byte }

// value returns a register's bytes, least significant first; nil: it is not known.
func (f *registerFile) value(r *register) []byte {
	size := r.bits / 8
	if r.general >= 0 {
		if at := 8 * r.general; at+size <= len(f.general) {
			return f.general[at : at+size]
		}
		return nil
	}
	if r.extended+size > len(f.extended) {
		return nil
	}
	word := func() uint32 { return uint32(binary.LittleEndian.Uint16(f.extended[r.extended:])) }
	switch {
	case r.name == "ftag":
		return binary.LittleEndian.AppendUint32(nil, fullTags(f.extended))
	case r.name == "fctrl" || r.name == "fstat" || r.name == "fiseg" || r.name == "foseg" || r.name == "fop":
		return binary.LittleEndian.AppendUint32(nil, word())
	case r.extended >= offsetYMM && binary.LittleEndian.Uint64(f.extended[offsetStates:])&stateAVX == 0:
		return make([]byte, size) // the initial state
	}
	return f.extended[r.extended : r.extended+size]
}

// fullTags makes the tag word, with two bits a register, of the abridged one (Intel SDM volume 2, FXSAVE, table 3-44).
func fullTags(area []byte) uint32 {
	const valid, zero, special, empty = 0, 1, 2, 3
	top := int(area[3]>>3) & 7
	tags := uint32(0)
	for physical := range 8 {
		tag := uint32(empty)
		if area[4]&(1<<physical) != 0 {
			st := area[offsetST+16*((physical-top)&7):]
			mantissa, exponent := binary.LittleEndian.Uint64(st), binary.LittleEndian.Uint16(st[8:])&0x7fff
			switch {
			case exponent == 0 && mantissa == 0:
				tag = zero
			case exponent == 0 || exponent == 0x7fff || mantissa>>63 == 0:
				tag = special
			default:
				tag = valid
			}
		}
		tags |= tag << (2 * physical)
	}
	return tags
}

// shortTags is the inverse of fullTags: a bit for each physical register that is not empty.
func shortTags(tags uint32) (short byte) {
	const empty = 3
	for physical := range 8 {
		if tags>>(2*physical)&3 != empty {
			short |= 1 << physical
		}
	}
	return short
}
