package transfer

import "strings"

// vectors handles the instructions on vectors that only move bytes, and those that treat bytes, words or
// longer elements separately.
func (b *builder) vectors() bool {
	v := vectorBuilder{b, b.inst.Op}
	if b.vex && v.name[0] == 'v' {
		v.name = v.name[1:]
	}
	switch {
	case b.float, v.masked():
		return false
	case v.name == "zeroupper", v.name == "zeroall":
		return v.zero()
	case !v.hasVector():
		return false
	case wholeMoves[v.name]:
		return b.move(0, 1)
	case v.sameOperands() && zeroIdioms[v.name]:
		b.clear(b.places[0], b.rest(0, b.places[0].Size))
		return true
	}
	if rule := shuffles[v.name]; rule != nil && rule(&v) {
		return true
	}
	if size := lanes[v.name]; size > 0 && v.lanesOf(size) {
		return true
	}
	return v.scalar()
}

// vectorBuilder is the builder for an instruction on vectors; name is without the "v" of VEX and EVEX.
type vectorBuilder struct {
	*builder
	name string
}

func (b *vectorBuilder) masked() bool {
	for n := range b.inst.Operands {
		if b.operand(n).Conditional || b.places[n].Space == Mask {
			return true
		}
	}
	return false
}

func (b *vectorBuilder) hasVector() bool {
	for _, p := range b.places {
		if p.Space == Vector {
			return true
		}
	}
	return false
}

func words(text string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		m[w] = true
	}
	return m
}

// wholeMoves copy the bytes that both operands have; "v" before a name is left out.
var wholeMoves = words("movdqa movdqu movaps movups movapd movupd lddqu movntdq movntdqa movntps movntpd " +
	"movdqa32 movdqa64 movdqu8 movdqu16 movdqu32 movdqu64")

// zeroIdioms clear a register that is both operands, or set its bits.
var zeroIdioms = words("pxor xorps xorpd psubb psubw psubd psubq pcmpeqb pcmpeqw pcmpeqd pcmpeqq pcmpgtb pcmpgtw pcmpgtd pcmpgtq pxord pxorq")

// lanes are the sizes of the elements that are treated separately.
var lanes = newLanes()

func newLanes() map[string]int {
	m := map[string]int{}
	for size, names := range map[int]string{
		1: "pand por pxor pandn andps andpd orps orpd xorps xorpd andnps andnpd pandd pandq pord porq pxord pxorq pandnd pandnq " +
			"paddb psubb paddsb psubsb paddusb psubusb pcmpeqb pcmpgtb pmaxub pminub pmaxsb pminsb pavgb pabsb psignb",
		2: "paddw psubw paddsw psubsw paddusw psubusw pcmpeqw pcmpgtw pmaxuw pminuw pmaxsw pminsw pavgw pabsw psignw pmullw pmulhw pmulhuw",
		4: "paddd psubd pcmpeqd pcmpgtd pmaxud pminud pmaxsd pminsd pabsd psignd pmulld addps subps mulps divps minps maxps sqrtps",
		8: "paddq psubq pcmpeqq pcmpgtq addpd subpd mulpd divpd minpd maxpd sqrtpd pmuludq pmuldq",
	} {
		for w := range strings.FieldsSeq(names) {
			m[w] = size
		}
	}
	return m
}

// sameOperands reports whether the two sources are one register.
func (b *vectorBuilder) sameOperands() bool {
	n := len(b.places)
	return n >= 2 && !b.operand(n-1).IsMemory && b.places[n-1].Space == Vector && b.places[n-1] == b.places[n-2]
}

func (b *vectorBuilder) zero() bool {
	for n := range uint8(16) {
		if b.name == "zeroall" {
			b.clear(Place{Vector, n, 0, VectorSize})
		} else {
			b.clear(Place{Vector, n, 16, VectorSize - 16})
		}
	}
	return true
}

// lanesOf handles elements that are treated separately. An element that is read once for all is not.
func (b *vectorBuilder) lanesOf(size int) bool {
	to := b.places[0]
	for _, p := range b.sources {
		if p.Size != to.Size {
			return false
		}
	}
	b.add(Transfer{To: to, From: b.sources, Lane: size})
	b.clear(b.rest(0, to.Size))
	return true
}

// notScalar are operations whose names end as those of scalars.
var notScalar = words("broadcastss broadcastsd fixupimmss fixupimmsd")

// scalar handles the operations on the lowest element: the others are kept, or the first source's.
func (b *vectorBuilder) scalar() bool {
	size := 0
	switch {
	case notScalar[b.name] || b.name[0] == 'p' || strings.HasPrefix(b.name, "mov") || strings.HasPrefix(b.name, "4f"):
	case strings.HasSuffix(b.name, "ss"):
		size = 4
	case strings.HasSuffix(b.name, "sd"):
		size = 8
	}
	if to := b.places[0]; size == 0 || to.Space != Vector || to.Size != chunk || !b.operand(0).Access.Writes() {
		return false
	}
	var from []Place
	for n := range b.inst.Operands {
		if p, ok := place(b.inst, n); ok && (b.operand(n).Access.Reads() || n > 0) {
			if p.Space == Vector {
				p.Size = min(p.Size, 8)
			}
			from = append(from, p)
		}
	}
	b.add(Transfer{To: b.places[0].part(0, size), From: from})
	if b.vex && !b.operand(0).Access.Reads() {
		if len(b.places) < 3 || b.places[1].Space != Vector {
			b.list = nil
			return false
		}
		b.copy(b.places[0].part(size, 16-size), b.places[1].part(size, 16-size))
	}
	b.clear(b.rest(0, 16))
	return true
}

// from is a byte of an operand, or of none.
type from struct{ operand, off int }

const noOperand = -1

// shuffle makes size bytes of operand 0, from off on, of the bytes that source names.
func (b *vectorBuilder) shuffle(off, size int, source func(n int) from) bool {
	to := b.places[0]
	for n := 0; n < size; {
		first := source(n)
		k := 1
		for n+k < size && source(n+k) == first.next(k) {
			k++
		}
		run := to.part(off+n, k)
		if first.operand == noOperand {
			b.clear(run)
		} else {
			b.copy(run, b.places[first.operand].part(first.off, k))
		}
		n += k
	}
	b.clear(b.rest(0, off+size))
	return true
}

// next is the byte k further on.
func (f from) next(k int) from {
	if f.operand == noOperand {
		return f
	}
	return from{f.operand, f.off + k}
}

// two returns the operands that are the sources of an instruction with two.
func (b *vectorBuilder) two() (first, second int, ok bool) {
	first, second = 0, 1
	if b.vex {
		first, second = 1, 2
	}
	if second >= len(b.places) || b.places[0].Space != Vector || b.operand(second).IsImm {
		return 0, 0, false
	}
	return first, second, b.places[second].Size == b.places[0].Size
}

// immediate is the last operand.
func (b *vectorBuilder) immediate() (int, bool) {
	o := b.operand(len(b.places) - 1)
	return int(o.Imm & 0xff), o.IsImm
}

const chunk = 16 // most shuffles treat runs of 16 bytes separately

// shuffles are the rules by name, without "v".
var shuffles = newShuffles()

func newShuffles() map[string]func(*vectorBuilder) bool {
	m := map[string]func(*vectorBuilder) bool{
		"movd": (*vectorBuilder).low, "movq": (*vectorBuilder).low,
		"movss": (*vectorBuilder).lowest, "movsd": (*vectorBuilder).lowest,
		"movlps": (*vectorBuilder).half, "movlpd": (*vectorBuilder).half, "movhps": (*vectorBuilder).half, "movhpd": (*vectorBuilder).half,
		"movlhps": (*vectorBuilder).halves, "movhlps": (*vectorBuilder).halves,
		"pshufd": (*vectorBuilder).permute, "shufps": (*vectorBuilder).choose, "shufpd": (*vectorBuilder).choose,
		"pslldq": (*vectorBuilder).slide, "psrldq": (*vectorBuilder).slide, "palignr": (*vectorBuilder).align,
		"insertf128": (*vectorBuilder).insert128, "inserti128": (*vectorBuilder).insert128,
		"extractf128": (*vectorBuilder).extract128, "extracti128": (*vectorBuilder).extract128,
	}
	for n, size := range map[string]int{"b": 1, "w": 2, "d": 4, "q": 8} {
		m["pinsr"+n] = func(b *vectorBuilder) bool { return b.insert(size) }
		m["pextr"+n] = func(b *vectorBuilder) bool { return b.extract(size) }
		m["pbroadcast"+n] = func(b *vectorBuilder) bool { return b.broadcast(size) }
	}
	m["broadcastss"], m["broadcastsd"] = m["pbroadcastd"], m["pbroadcastq"]
	m["broadcastf128"] = func(b *vectorBuilder) bool { return b.broadcast(chunk) }
	m["broadcasti128"] = m["broadcastf128"]
	for name, size := range map[string]int{"punpcklbw": 1, "punpcklwd": 2, "punpckldq": 4, "punpcklqdq": 8, "unpcklps": 4, "unpcklpd": 8} {
		m[name] = func(b *vectorBuilder) bool { return b.interleave(size, 0) }
		m[strings.Replace(name, "ckl", "ckh", 1)] = func(b *vectorBuilder) bool { return b.interleave(size, chunk/2) }
	}
	return m
}

// low handles movd and movq.
func (b *vectorBuilder) low() bool {
	to, source := b.places[0], b.places[1]
	size := min(to.Size, source.Size, 8)
	if strings.HasSuffix(b.inst.Op, "d") && size > 4 && to.Space != General && source.Space != General {
		size = 4
	}
	b.copy(to.part(0, size), source.part(0, size))
	b.clear(to.part(size, to.Size-size), b.rest(0, to.Size))
	return true
}

// lowest handles movss and movsd.
func (b *vectorBuilder) lowest() bool {
	size := 4
	if b.name == "movsd" {
		size = 8
	}
	to := b.places[0]
	switch {
	case to.Space == Memory:
		b.copy(to.part(0, size), b.places[1].part(0, size))
	case len(b.places) == 3: // the others are the second operand's
		b.copy(to.part(0, size), b.places[2].part(0, size))
		b.copy(to.part(size, chunk-size), b.places[1].part(size, chunk-size))
		b.clear(b.rest(0, chunk))
	case b.places[1].Space == Memory:
		b.copy(to.part(0, size), b.places[1].part(0, size))
		b.clear(to.part(size, chunk-size), b.rest(0, chunk))
	default:
		b.copy(to.part(0, size), b.places[1].part(0, size))
	}
	return true
}

// half handles the moves of the lower or upper half, to and from memory.
func (b *vectorBuilder) half() bool {
	off := 0
	if strings.HasPrefix(b.name, "movh") {
		off = 8
	}
	to := b.places[0]
	switch {
	case to.Space == Memory:
		b.copy(to.part(0, 8), b.places[1].part(off, 8))
	case len(b.places) == 3:
		b.copy(to.part(off, 8), b.places[2].part(0, 8))
		b.copy(to.part(8-off, 8), b.places[1].part(8-off, 8))
		b.clear(b.rest(0, chunk))
	default:
		b.copy(to.part(off, 8), b.places[1].part(0, 8))
	}
	return true
}

// halves handles movlhps and movhlps.
func (b *vectorBuilder) halves() bool {
	to, at := 8, 0
	if b.name == "movhlps" {
		to, at = 0, 8
	}
	second := b.places[len(b.places)-1]
	b.copy(b.places[0].part(to, 8), second.part(at, 8))
	if len(b.places) == 3 {
		b.copy(b.places[0].part(8-to, 8), b.places[1].part(8-to, 8))
	}
	b.clear(b.rest(0, chunk))
	return true
}

// interleave handles the unpacking of elements; start is 0 or half a chunk.
func (b *vectorBuilder) interleave(size, start int) bool {
	first, second, ok := b.two()
	if !ok {
		return false
	}
	return b.shuffle(0, b.places[0].Size, func(n int) from {
		element := n % chunk / size
		off := n/chunk*chunk + start + element/2*size + n%size
		if element%2 == 0 {
			return from{first, off}
		}
		return from{second, off}
	})
}

// permute handles pshufd.
func (b *vectorBuilder) permute() bool {
	imm, ok := b.immediate()
	if !ok || b.places[1].Size != b.places[0].Size {
		return false
	}
	return b.shuffle(0, b.places[0].Size, func(n int) from {
		return from{1, n/chunk*chunk + imm>>(2*(n%chunk/4))&3*4 + n%4}
	})
}

// choose handles shufps and shufpd.
func (b *vectorBuilder) choose() bool {
	first, second, ok := b.two()
	imm, has := b.immediate()
	if !ok || !has {
		return false
	}
	return b.shuffle(0, b.places[0].Size, func(n int) from {
		at, source := n/chunk*chunk, first
		if n%chunk >= chunk/2 {
			source = second
		}
		if b.name == "shufpd" {
			return from{source, at + imm>>(n/8)&1*8 + n%8}
		}
		return from{source, at + imm>>(2*(n%chunk/4))&3*4 + n%4}
	})
}

// slide handles the shifts by whole bytes.
func (b *vectorBuilder) slide() bool {
	imm, ok := b.immediate()
	source := len(b.places) - 2
	if !ok || b.places[source].Size != b.places[0].Size {
		return false
	}
	return b.shuffle(0, b.places[0].Size, func(n int) from {
		at := n%chunk + imm
		if b.name == "pslldq" {
			at = n%chunk - imm
		}
		if at < 0 || at >= chunk {
			return from{operand: noOperand}
		}
		return from{source, n/chunk*chunk + at}
	})
}

// align handles palignr.
func (b *vectorBuilder) align() bool {
	first, second, ok := b.two()
	imm, has := b.immediate()
	if !ok || !has {
		return false
	}
	return b.shuffle(0, b.places[0].Size, func(n int) from {
		switch at := n%chunk + imm; {
		case at < chunk:
			return from{second, n/chunk*chunk + at}
		case at < 2*chunk:
			return from{first, n/chunk*chunk + at - chunk}
		}
		return from{operand: noOperand}
	})
}

// insert handles pinsr.
func (b *vectorBuilder) insert(size int) bool {
	imm, ok := b.immediate()
	value := len(b.places) - 2
	if !ok || b.places[0].Space != Vector {
		return false
	}
	at := imm * size % chunk
	if b.vex {
		b.copy(b.places[0].part(0, at), b.places[1].part(0, at))
		b.copy(b.places[0].part(at+size, chunk-at-size), b.places[1].part(at+size, chunk-at-size))
		b.clear(b.rest(0, chunk))
	}
	b.copy(b.places[0].part(at, size), b.places[value].part(0, size))
	return true
}

// extract handles pextr.
func (b *vectorBuilder) extract(size int) bool {
	imm, ok := b.immediate()
	to := b.places[0]
	if !ok || len(b.places) != 3 || b.places[1].Space != Vector {
		return false
	}
	b.copy(to.part(0, size), b.places[1].part(imm*size%chunk, size))
	if to.Space == General {
		b.clear(to.part(size, 8-size))
	}
	return true
}

// broadcast handles the moves of one element to all.
func (b *vectorBuilder) broadcast(size int) bool {
	if b.places[0].Space != Vector || len(b.places) != 2 || b.places[1].Size < size {
		return false
	}
	return b.shuffle(0, b.places[0].Size, func(n int) from { return from{1, n % size} })
}

func (b *vectorBuilder) insert128() bool {
	imm, ok := b.immediate()
	if !ok || len(b.places) != 4 || b.places[0].Size != 32 {
		return false
	}
	return b.shuffle(0, 32, func(n int) from {
		if n/chunk == imm&1 {
			return from{2, n % chunk}
		}
		return from{1, n}
	})
}

func (b *vectorBuilder) extract128() bool {
	imm, ok := b.immediate()
	to := b.places[0]
	if !ok || len(b.places) != 3 || to.Size != chunk {
		return false
	}
	b.copy(to, b.places[1].part(imm&1*chunk, chunk))
	if to.Space == Vector {
		b.clear(to.part(chunk, VectorSize-chunk))
	}
	return true
}
