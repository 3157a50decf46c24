package expression

import "diagnose/image/debuginfo"

// basicType is a type that needs no debug information: one of C's own, or a pointer or an array
// made in an expression. Sizes are those of the System V ABI for x86-64, figure 3.1.
type basicType struct {
	name   string
	kind   debuginfo.Kind
	size   int64
	signed bool
	elem   debuginfo.Type
	count  int64
}

func (t *basicType) Name() string                    { return t.name }
func (t *basicType) Kind() debuginfo.Kind            { return t.kind }
func (t *basicType) Size() int64                     { return t.size }
func (t *basicType) Signed() bool                    { return t.signed }
func (t *basicType) Elem() debuginfo.Type            { return t.elem }
func (t *basicType) Count() int64                    { return t.count }
func (t *basicType) Members() []debuginfo.Member     { return nil }
func (t *basicType) Reference() bool                 { return false }
func (t *basicType) Enumerator(int64) (string, bool) { return "", false }

func (t *basicType) Variant(func(debuginfo.Member) (uint64, error)) (string, []debuginfo.Member, bool) {
	return "", nil, false
}

var (
	intType      = &basicType{name: "int", kind: debuginfo.KindInt, size: 4, signed: true}
	uintType     = &basicType{name: "unsigned int", kind: debuginfo.KindUint, size: 4}
	longType     = &basicType{name: "long", kind: debuginfo.KindInt, size: 8, signed: true}
	ulongType    = &basicType{name: "unsigned long", kind: debuginfo.KindUint, size: 8}
	floatType    = &basicType{name: "float", kind: debuginfo.KindFloat, size: 4}
	doubleType   = &basicType{name: "double", kind: debuginfo.KindFloat, size: 8}
	charType     = &basicType{name: "char", kind: debuginfo.KindChar, size: 1, signed: true}
	voidType     = &basicType{name: "void", kind: debuginfo.KindVoid}
	functionType = &basicType{name: "function", kind: debuginfo.KindFunc}
)

// ownTypes are C's own types by name.
var ownTypes = map[string]*basicType{
	"void": voidType, "int": intType, "unsigned int": uintType, "long": longType, "unsigned long": ulongType,
	"float": floatType, "double": doubleType, "char": charType,
	"signed char":    {name: "signed char", kind: debuginfo.KindChar, size: 1, signed: true},
	"unsigned char":  {name: "unsigned char", kind: debuginfo.KindChar, size: 1},
	"short":          {name: "short", kind: debuginfo.KindInt, size: 2, signed: true},
	"unsigned short": {name: "unsigned short", kind: debuginfo.KindUint, size: 2},
	"bool":           {name: "bool", kind: debuginfo.KindBool, size: 1},
	"long double":    {name: "long double", kind: debuginfo.KindFloat, size: 16},
}

// standardTypes are those of C11, 7.20 and 7.19. A program's debug information may lack them.
var standardTypes = map[string]*basicType{
	"int8_t": ownTypes["signed char"], "uint8_t": ownTypes["unsigned char"], "int16_t": ownTypes["short"], "uint16_t": ownTypes["unsigned short"],
	"int32_t": intType, "uint32_t": uintType, "int64_t": longType, "uint64_t": ulongType,
	"size_t": ulongType, "ptrdiff_t": longType, "intptr_t": longType, "uintptr_t": ulongType,
}

// pointerTo returns the type of pointers to a type; nil is void.
func pointerTo(t debuginfo.Type) *basicType {
	name := "void"
	if t != nil {
		name = t.Name()
		if t.Kind() == debuginfo.KindVoid {
			t = nil
		}
	}
	if n := len(name); n == 0 || name[n-1] != '*' {
		name += " "
	}
	return &basicType{name: name + "*", kind: debuginfo.KindPointer, size: 8, elem: t}
}

// FunctionType is the type of functions of which nothing else is known.
func FunctionType() debuginfo.Type { return functionType }
