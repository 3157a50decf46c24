package value

import "diagnose/image/debuginfo"

// Number is the value of a variable of an integer or pointer type; false: it has none that is known in the frame.
func Number(f *Frame, v debuginfo.Variable) (int64, bool) {
	if v.Type == nil || !isWord(v.Type) {
		return 0, false
	}
	loc, err := Lives(f, v)
	if err != nil {
		return 0, false
	}
	size := v.Type.Size()
	o, err := loc.object(f, size)
	if err != nil {
		return 0, false
	}
	data, err := o.read(size)
	if err != nil {
		return 0, false
	}
	n := unsignedOf(data)
	if shift := uint(64 - 8*size); isSigned(v.Type) {
		return int64(n<<shift) >> shift, true
	}
	return int64(n), true
}
