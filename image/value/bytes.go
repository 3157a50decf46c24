package value

import "diagnose/image/debuginfo"

// Bytes returns at most `most` bytes of a variable in the frame, lowest address
// first. The error is an *UnavailableError when the variable has no value
// there, and otherwise says what could not be read.
func Bytes(f *Frame, v debuginfo.Variable, most int64) ([]byte, error) {
	if v.Type == nil {
		return nil, unavailable("its type is not known")
	}
	loc, err := Lives(f, v)
	if err != nil {
		return nil, err
	}
	obj, err := loc.object(f, v.Type.Size())
	if err != nil {
		return nil, err
	}
	return obj.source.read(0, min(v.Type.Size(), most))
}
