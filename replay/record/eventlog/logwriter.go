package eventlog

import (
	"fmt"
	"io"
	"iter"
)

// WriteLog writes a log as the engine would, from events in the order of their tickets. It
// converts the text form to a log.
func WriteLog(w io.WriterAt, pid uint32, events iter.Seq2[*Event, error]) error {
	lw := &logWriter{w: w, next: extentSize, threads: map[uint32]*writtenThread{}}
	header := make([]byte, extentSize)
	le.PutUint64(header, logMagic)
	le.PutUint32(header[8:], logVersion)
	le.PutUint32(header[12:], pid)
	if err := lw.write(header, 0); err != nil {
		return err
	}
	for e, err := range events {
		if err == nil {
			err = lw.addEvent(e)
		}
		if err != nil {
			return err
		}
	}
	// The last extent is complete, with zeros after its events.
	return lw.write([]byte{0}, lw.next-1)
}

type logWriter struct {
	w       io.WriterAt
	next    int64 // offset of the next extent
	threads map[uint32]*writtenThread
	buffer  []byte
}

type writtenThread struct {
	at, end  int64
	sequence uint32
}

func (w *logWriter) addEvent(e *Event) error {
	var err error
	if w.buffer, err = e.Encode(w.buffer[:0]); err != nil {
		return err
	}
	t := w.threads[e.Thread]
	if t == nil {
		t = new(writtenThread)
		w.threads[e.Thread] = t
	}
	if n := int64(len(w.buffer)); t.end-t.at < n {
		if err := w.extend(e.Thread, t, n); err != nil {
			return err
		}
	}
	err = w.write(w.buffer, t.at)
	t.at += int64(len(w.buffer))
	return err
}

// extend gives the thread an extent with room for n bytes.
func (w *logWriter) extend(thread uint32, t *writtenThread, n int64) error {
	size := (n + extentHeaderSize + extentSize - 1) / extentSize * extentSize
	header := le.AppendUint64(nil, extentMagic)
	header = le.AppendUint32(header, thread)
	header = le.AppendUint32(header, t.sequence)
	header = le.AppendUint64(header, uint64(size))
	header = le.AppendUint64(header, 0)
	if err := w.write(header, w.next); err != nil {
		return err
	}
	t.at, t.end = w.next+extentHeaderSize, w.next+size
	t.sequence++
	w.next += size
	return nil
}

func (w *logWriter) write(b []byte, at int64) error {
	if _, err := w.w.WriteAt(b, at); err != nil {
		return fmt.Errorf("record: log: %w", err)
	}
	return nil
}
