package debuginfo

// InGeneralRegister reports whether an argument of a type is handed over in one general register (System V ABI, AMD64 supplement, 3.2.3).
func InGeneralRegister(t Type) bool {
	if t == nil {
		return false
	}
	switch t.Kind() {
	case KindBool, KindChar, KindInt, KindUint, KindEnum, KindPointer:
		return t.Size() <= 8
	}
	return false
}
