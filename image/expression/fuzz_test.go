package expression

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
)

// zeroes is memory of which one page is mapped.
type zeroes struct{}

func (zeroes) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	if addr >= 1<<20 || uint64(len(p)) > 1<<20-uint64(addr) {
		return 0, &image.MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
	}
	for i := range p {
		p[i] = byte(addr) + byte(i)
	}
	return len(p), nil
}

// anything is a scope in which every name of one letter is something.
type anything struct{}

func (anything) Memory() image.Memory { return zeroes{} }

func (anything) Type(name string) (debuginfo.Type, bool) {
	t, known := ownTypes[name]
	return t, known
}

func (anything) Variable(name string) (value.Object, bool, error) {
	types := []debuginfo.Type{intType, uintType, longType, ulongType, floatType, doubleType, charType, voidType, functionType, ownTypes["long double"],
		pointerTo(intType), pointerTo(nil), pointerTo(pointerTo(charType)), &basicType{kind: debuginfo.KindArray, elem: intType, size: 16, count: 4},
		&basicType{kind: debuginfo.KindPointer, size: 4}, &basicType{kind: debuginfo.KindInt, size: 1 << 40}, &basicType{kind: debuginfo.KindStruct, size: 24},
		&basicType{kind: debuginfo.KindArray, elem: &basicType{kind: debuginfo.KindInt, size: 1 << 62}, count: -1}, nil}
	if len(name) != 1 {
		return value.Object{}, false, nil
	}
	if n := int(name[0]) % 32; n < len(types) {
		return value.ObjectAt(zeroes{}, evidence.Addr(n)<<8, types[n]), true, nil
	}
	return value.Object{}, true, valueProblem("it has no value")
}

func FuzzExpression(f *testing.F) {
	for _, text := range []string{"a + b * 2", "(int *)l[3] - k", `m[1] == "x"`, "a ? b : c && d || !e", "sizeof(unsigned long) << 'a'", "-~+a >> 1.5e3f", "**m", "&n[2]", "p->q.r", "::a::b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text, func(name string) bool { return name == "T" })
		if err != nil {
			return
		}
		e.Check(anything{})
		o, err := e.Eval(anything{})
		if err == nil {
			o.Bytes()
			o.Format(value.Defaults)
		}
		e.True(anything{})
	})
}
