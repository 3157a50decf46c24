package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"diagnose/agent"
	"diagnose/evidence"
)

// ImageBase is where a replayed process has the image.
const ImageBase evidence.Addr = agent.EngineImage

const (
	imageHeaderSize = 56
	imageThreadSize = 32
	runSize         = 8
	// imageLimit is how much the engine's window for it has.
	imageLimit = agent.EngineStacks - agent.EngineImage
)

// ImageOptions are what a replay's image has beside the log.
type ImageOptions struct {
	// Skipped says how many mutexes a thread took without an event behind its
	// last one, where that is known.
	Skipped map[uint32]uint64
}

// Image says where things are in an image.
type Image struct {
	Size   int64
	Events uint64
	// Threads has the address ranges of the threads' events.
	Threads map[uint32]ImageRange
}

// ImageRange is from the first event of a thread to behind its last.
type ImageRange struct{ Start, End evidence.Addr }

// WriteImage writes what a replayed process reads: the events of every thread
// in a row, as many as the schedule has of it, and the schedule (struct
// dg_replay_header). It fails if the log has fewer events than the schedule.
func (l *Log) WriteImage(w io.WriterAt, s Schedule, o ImageOptions) (*Image, error) {
	counts := s.Events()
	threads := uint32(1)
	for thread := range counts {
		threads = max(threads, thread+1)
	}
	table := int64(imageHeaderSize + 8)
	at := table + int64(threads)*imageThreadSize
	image := &Image{Threads: map[uint32]ImageRange{}}
	entries := make([]byte, int64(threads)*imageThreadSize)
	for thread := uint32(1); thread < threads; thread++ {
		if counts[thread] == 0 {
			continue
		}
		n, err := l.copyEvents(io.NewOffsetWriter(w, at), thread, counts[thread])
		if err != nil {
			return nil, err
		}
		r := ImageRange{ImageBase + evidence.Addr(at), ImageBase + evidence.Addr(at+n)}
		skipped, known := o.Skipped[thread]
		if !known {
			skipped = ^uint64(0)
		}
		entry := entries[thread*imageThreadSize:]
		le.PutUint64(entry, uint64(r.Start))
		le.PutUint64(entry[8:], uint64(r.End))
		le.PutUint64(entry[16:], skipped)
		image.Threads[thread] = r
		image.Events += counts[thread]
		at += n
	}
	image.Size = at + int64(len(s))*runSize
	if image.Size > imageLimit {
		return nil, fmt.Errorf("record: the image of the log has %d bytes, a replay can have %d", image.Size, int64(imageLimit))
	}
	if err := s.write(io.NewOffsetWriter(w, at)); err != nil {
		return nil, err
	}
	header := imageHeader(threads, table, at, len(s), image)
	return image, errors.Join(writeAll(w, header, 0), writeAll(w, entries, table))
}

func imageHeader(threads uint32, table, runs int64, count int, image *Image) []byte {
	b := le.AppendUint64(nil, logMagic)
	b = le.AppendUint32(b, logVersion)
	b = le.AppendUint32(b, threads)
	b = le.AppendUint64(b, uint64(ImageBase)+uint64(table))
	b = le.AppendUint64(b, uint64(ImageBase)+uint64(runs))
	b = le.AppendUint64(b, uint64(count))
	b = le.AppendUint64(b, image.Events)
	return le.AppendUint64(b, uint64(image.Size))
}

func writeAll(w io.WriterAt, b []byte, at int64) error {
	if _, err := w.WriteAt(b, at); err != nil {
		return fmt.Errorf("record: image: %w", err)
	}
	return nil
}

// copyEvents writes the first count events of a thread and returns their size.
func (l *Log) copyEvents(w io.Writer, thread uint32, count uint64) (int64, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	c := l.Cursor(thread)
	var size int64
	var full []byte
	for i := range count {
		e, err := c.Next()
		if err == io.EOF {
			return 0, fmt.Errorf("record: image: the schedule has %d events of thread %d, the log %d", count, thread, i)
		} else if err != nil {
			return 0, err
		}
		raw := c.raw
		if c.short {
			if full, err = e.Encode(full[:0]); err != nil {
				return 0, err
			}
			raw = full
		}
		n, err := out.Write(raw)
		if err != nil {
			return 0, fmt.Errorf("record: image: %w", err)
		}
		size += int64(n)
	}
	if err := out.Flush(); err != nil {
		return 0, fmt.Errorf("record: image: %w", err)
	}
	return size, nil
}

func (s Schedule) write(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	for _, r := range s {
		out.Write(le.AppendUint32(le.AppendUint32(out.AvailableBuffer(), r.Thread), r.Events))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("record: image: %w", err)
	}
	return nil
}
