package object

// ReadOffset reads the file at an offset. Mapped pages may hold more of the
// file than their segments.
func (f *File) ReadOffset(p []byte, offset uint64) (n int, err error) {
	if f.hollow {
		return 0, f.formatError("", offset, "a debug file holds no loaded contents")
	}
	rest := uint64(len(f.data)) - min(offset, uint64(len(f.data)))
	b, ok := f.bytes(offset, min(rest, uint64(len(p))))
	if !ok || len(b) == 0 && len(p) > 0 {
		return 0, f.formatError("", offset, "the file ends at %#x", len(f.data))
	}
	if err := f.guard("", func() { n = copy(p, b) }); err != nil {
		return n, err
	}
	if n < len(p) {
		return n, f.formatError("", offset+uint64(n), "the file ends here")
	}
	return n, nil
}
