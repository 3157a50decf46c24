package corestream

import "io"

// stream counts the bytes that were read.
type stream struct {
	r  io.Reader
	at uint64
}

// full fills b, or fails.
func (s *stream) full(b []byte) error {
	n, err := io.ReadFull(s.r, b)
	s.at += uint64(n)
	return err
}

// skipTo drops the bytes before an offset; one that was passed is no error here, because arrange has
// checked the order.
func (s *stream) skipTo(offset uint64) error {
	for s.at < offset {
		n, err := io.CopyN(io.Discard, s.r, int64(min(offset-s.at, 1<<30)))
		s.at += uint64(n)
		if err != nil {
			return err
		}
	}
	return nil
}
