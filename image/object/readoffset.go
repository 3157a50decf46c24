package object

// ReadOffset reads the file at an offset. Mapped pages may hold more of the
// file than their segments.
func (h *headers) ReadOffset(p []byte, offset uint64) (n int, err error) {
	if h.hollow {
		return 0, h.file.formatError("", offset, "a debug file holds no loaded contents")
	}
	rest := uint64(len(h.file.data)) - min(offset, uint64(len(h.file.data)))
	b, ok := h.file.bytes(offset, min(rest, uint64(len(p))))
	if !ok || len(b) == 0 && len(p) > 0 {
		return 0, h.file.formatError("", offset, "the file ends at %#x", len(h.file.data))
	}
	if err := h.file.guard("", func() { n = copy(p, b) }); err != nil {
		return n, err
	}
	if n < len(p) {
		return n, h.file.formatError("", offset+uint64(n), "the file ends here")
	}
	return n, nil
}
