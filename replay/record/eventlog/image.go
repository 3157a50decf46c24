package eventlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
)

// ImageBase is the address of the image in a replayed process.
const ImageBase evidence.Addr = agent.EngineImage

const (
	imageHeaderSize = 56
	imageThreadSize = 32
	runSize         = 8
	// imageLimit is the size of the engine's window for it.
	imageLimit = agent.EngineStacks - agent.EngineImage
)

// ImageOptions say what an image holds in addition to the log.
type ImageOptions struct {
	// Skipped is how many mutexes a thread took without an event after its last one, where that
	// is known.
	Skipped map[uint32]uint64
	// Preemptions are points that are added to the threads' events.
	Preemptions []Preemption
}

// Image describes where parts of an image are.
type Image struct {
	Size   int64
	Events uint64
	// Runs is the schedule with the preemptions' events.
	Runs Schedule
	// Threads has the address range of each thread's events.
	Threads map[uint32]ImageRange
}

// ImageRange is the range from the first event of a thread to the end of its last.
type ImageRange struct{ Start, End evidence.Addr }

// WriteImage writes the data that a replayed process reads: for each thread as many events as
// the schedule has of it, in a row, and the schedule (struct dg_replay_header). It fails if the
// log has fewer events than the schedule.
func (l *Log) WriteImage(w io.WriterAt, s Schedule, o ImageOptions) (*Image, error) {
	counts := s.Events()
	runs, err := s.WithPreemptions(o.Preemptions)
	if err != nil {
		return nil, err
	}
	points := sortPreemptions(o.Preemptions)
	threads := uint32(1)
	for thread := range counts {
		threads = max(threads, thread+1)
	}
	table := int64(imageHeaderSize + 8)
	at := table + int64(threads)*imageThreadSize
	image := &Image{Runs: runs, Threads: map[uint32]ImageRange{}}
	entries := make([]byte, int64(threads)*imageThreadSize)
	for thread := uint32(1); thread < threads; thread++ {
		if counts[thread] == 0 {
			continue
		}
		own := preemptionsOf(points, thread)
		n, err := l.copyEvents(io.NewOffsetWriter(w, at), thread, counts[thread], own)
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
		le.PutUint64(entry[24:], uint64(len(own)))
		image.Threads[thread] = r
		image.Events += counts[thread]
		at += n
	}
	image.Size = at + int64(len(runs))*runSize
	if image.Size > imageLimit {
		return nil, fmt.Errorf("record: the image of the log has %d bytes, a replay can have %d", image.Size, int64(imageLimit))
	}
	if err := runs.write(io.NewOffsetWriter(w, at)); err != nil {
		return nil, err
	}
	header := imageHeader(threads, table, at, len(runs), image)
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

// copyEvents writes the first count events of a thread, with its points, and the pending one if that follows. It
// returns their size.
func (l *Log) copyEvents(w io.Writer, thread uint32, count uint64, points []Preemption) (int64, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	c := l.Cursor(thread)
	var size int64
	var full []byte
	for i := uint64(0); ; i++ {
		e, err := c.Next()
		if i >= count && (err != nil || !e.Pending()) {
			break
		}
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
		for ; len(points) > 0 && points[0].Ordinal == e.Ordinal; points = points[1:] {
			if e.Kind == KindExit || e.Kind == KindEnd {
				return 0, fmt.Errorf("record: image: %v: nothing follows there", points[0])
			}
			point, err := points[0].point().Encode(nil)
			if err != nil {
				return 0, err
			}
			raw = append(slices.Clip(raw), point...)
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
