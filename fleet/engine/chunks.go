package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/restic/chunker"
)

// Files are cut where their content says so (content-defined chunking, by restic's chunker), in
// chunks of 128 KiB on average: a second core of a program shares most chunks with the first,
// though all that follows a changed mapping has other offsets. BenchmarkDedup measures it.
const (
	leastChunk, mostChunk, chunkBits = 32 << 10, 896 << 10, 17
	// polynomial decides where files are cut. With another one nothing is shared with trees
	// that were stored before. It is irreducible, as chunker needs it.
	polynomial = chunker.Pol(0x3DA3358B4DC173)
	// leastPayload is what a message with a chunk needs, which may not compress.
	leastPayload = mostChunk + 16<<10
	// tinyChunk is up to which size a chunk is sent without asking whether the engine has it.
	tinyChunk = 4 << 10
	// atOnce is how many chunks are sent or fetched at a time.
	atOnce = 8
)

// The kinds of bucket that trees are in.
const (
	chunksKind = "chunks" // zstd frames by the digest of their content
	treesKind  = "trees"  // the chunks of lists, by reference
)

// bucket is a key-value bucket with the stream below it.
type bucket struct {
	jetstream.KeyValue
	stream jetstream.Stream
	prefix string // of the subjects
}

// bucket returns a bucket of the team, and makes it if it is not there and make is set. Without,
// the error is jetstream.ErrBucketNotFound.
func (e *Engine) bucket(ctx context.Context, kind, description string, make bool) (*bucket, error) {
	e.mutex.Lock()
	known := e.buckets[kind]
	e.mutex.Unlock()
	if known != nil {
		return known, nil
	}
	name := e.Name(kind)
	b, err := run(ctx, e, func(ctx context.Context) (*bucket, error) {
		kv, err := e.js.KeyValue(ctx, name)
		if errors.Is(err, jetstream.ErrBucketNotFound) && make {
			kv, err = e.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, Description: description, MaxValueSize: leastPayload, Storage: jetstream.FileStorage})
			if errors.Is(err, jetstream.ErrBucketExists) { // another process made it, with other limits
				kv, err = e.js.KeyValue(ctx, name)
			}
		}
		if err != nil {
			return nil, err
		}
		stream, err := e.js.Stream(ctx, "KV_"+name)
		return &bucket{kv, stream, "$KV." + name + "."}, err
	})
	if err != nil {
		return nil, err
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.buckets[kind] = b
	return b, nil
}

// chunkBucket and treeBucket return the buckets of trees.
func (e *Engine) chunkBucket(ctx context.Context, make bool) (*bucket, error) {
	return e.bucket(ctx, chunksKind, "Parts of files, by the digest of their content", make)
}

func (e *Engine) treeBucket(ctx context.Context, make bool) (*bucket, error) {
	return e.bucket(ctx, treesKind, "Lists of files, by their digest", make)
}

// has reports whether a bucket has a key, without fetching the value.
func (e *Engine) has(ctx context.Context, b *bucket, key string) (bool, error) {
	return run(ctx, e, func(ctx context.Context) (bool, error) {
		info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(b.prefix+key))
		if err != nil {
			return false, err
		}
		return info.State.Subjects[b.prefix+key] > 0, nil
	})
}

// create stores a value unless the key has one, and reports whether it did. Values are told by
// their digest, so the one that is there is as good.
func (e *Engine) create(ctx context.Context, b *bucket, key string, value []byte) (created bool, err error) {
	return run(ctx, e, func(ctx context.Context) (bool, error) {
		// Create would read the value that is there, which a user that only pushes may not.
		_, err := b.Update(ctx, key, value, 0)
		if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return false, nil
		}
		return err == nil, err
	})
}

// get returns the value of a key.
func (e *Engine) get(ctx context.Context, b *bucket, key string) ([]byte, error) {
	return run(ctx, e, func(ctx context.Context) ([]byte, error) {
		entry, err := b.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		return entry.Value(), nil
	})
}

// compressor returns what compresses chunks. It may be used concurrently.
var compressor = sync.OnceValue(func() *zstd.Encoder {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2))
	if err != nil {
		panic(err) // the options are constant
	}
	return z
})

// decompressor returns what never makes more of a chunk than the largest has.
var decompressor = sync.OnceValue(func() *zstd.Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(mostChunk), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		panic(err) // the options are constant
	}
	return z
})

// fetch returns the content of a chunk, checked by its digest.
func (e *Engine) fetch(ctx context.Context, b *bucket, c chunk) ([]byte, error) {
	value, err := e.get(ctx, b, c.sum.String())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, inputf("the engine does not have the chunk %v", c.sum)
	}
	if err != nil {
		return nil, err
	}
	content, err := decompressor().DecodeAll(value, nil)
	if err != nil {
		return nil, inputf("the chunk %v: %w", c.sum, err)
	}
	if len(content) != c.size || sha256.Sum256(content) != c.sum {
		return nil, inputf("the chunk %v has another content than its name says", c.sum)
	}
	return content, nil
}

// cutter cuts a stream into chunks.
type cutter struct {
	chunker *chunker.Chunker
	buffer  []byte
}

func newCutter() *cutter { return &cutter{buffer: make([]byte, mostChunk)} }

func (c *cutter) reset(in io.Reader) {
	if c.chunker == nil {
		c.chunker = chunker.NewWithBoundaries(in, polynomial, leastChunk, mostChunk)
	} else {
		c.chunker.ResetWithBoundaries(in, polynomial, leastChunk, mostChunk)
	}
	c.chunker.SetAverageBits(chunkBits)
}

// next returns the next chunk, which the following call overwrites. The error after the last one
// is io.EOF.
func (c *cutter) next() ([]byte, error) {
	part, err := c.chunker.Next(c.buffer)
	return part.Data, err
}
