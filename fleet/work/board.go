package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"diagnose/corpus/nightly"
	"diagnose/fleet/engine"
)

const (
	// beatEvery is how often a worker says that it lives, and livesFor how long that holds.
	beatEvery, livesFor = 10 * time.Second, 35 * time.Second
	// keepFor is how long a result waits for a night that takes it.
	keepFor = 14 * 24 * time.Hour
	// sameFor is how long the stream knows the id of a message that was put twice.
	sameFor = 2 * time.Minute
	// mostJobs bounds the queue.
	mostJobs = 1 << 20
)

// board is the team's part of the engine.
type board struct {
	engine  *engine.Engine
	jobs    jetstream.Stream
	classes jetstream.KeyValue
	results jetstream.KeyValue
	tries   jetstream.KeyValue
	workers jetstream.KeyValue
}

// openBoard opens the parts, and makes those that are missing.
func openBoard(ctx context.Context, e *engine.Engine) (*board, error) {
	b := &board{engine: e}
	var err error
	b.jobs, err = engine.Request(ctx, e, func(ctx context.Context) (jetstream.Stream, error) {
		return e.JetStream().CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: e.Name("jobs"), Description: "failures to diagnose", Subjects: []string{e.Subject("jobs") + ".*.*"},
			Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Duplicates: sameFor,
			MaxMsgs: mostJobs, MaxMsgSize: mostJob, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		})
	})
	if err != nil {
		return nil, fmt.Errorf("work: the queue: %w", err)
	}
	for _, k := range []struct {
		to         *jetstream.KeyValue
		kind, what string
		size       int32
		keep       time.Duration
	}{
		{&b.classes, "classes", "what jobs need", mostNeeds, keepFor},
		{&b.results, "results", "results of jobs that no night has taken yet", mostResult, keepFor},
		{&b.tries, "tries", "who began a job", mostResult, keepFor},
		{&b.workers, "workers", "workers that live", mostResult, livesFor},
	} {
		*k.to, err = engine.Request(ctx, e, func(ctx context.Context) (jetstream.KeyValue, error) {
			return e.JetStream().CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
				Bucket: e.Name(k.kind), Description: k.what, MaxValueSize: k.size, TTL: k.keep, History: 1, Storage: jetstream.FileStorage})
		})
		if err != nil {
			return nil, fmt.Errorf("work: the %s: %w", k.kind, err)
		}
	}
	return b, nil
}

// subject is that of a job: its class has one consumer, and the id is there once.
func (b *board) subject(class, id string) string {
	return b.engine.Subject("jobs") + "." + class + "." + id
}

// get returns the value of a key; nil: there is none.
func (b *board) get(ctx context.Context, bucket jetstream.KeyValue, key string) (jetstream.KeyValueEntry, error) {
	return engine.Request(ctx, b.engine, func(ctx context.Context) (jetstream.KeyValueEntry, error) {
		entry, err := bucket.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil, nil
		}
		return entry, err
	})
}

// put sets the value of a key.
func (b *board) put(ctx context.Context, bucket jetstream.KeyValue, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = engine.Request(ctx, b.engine, func(ctx context.Context) (uint64, error) { return bucket.Put(ctx, key, text) })
	return err
}

// create sets the value of a key that has none, and reports whether it did.
func (b *board) create(ctx context.Context, bucket jetstream.KeyValue, key string, value any) (bool, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return false, err
	}
	return engine.Request(ctx, b.engine, func(ctx context.Context) (bool, error) {
		_, err := bucket.Create(ctx, key, text)
		if errors.Is(err, jetstream.ErrKeyExists) {
			return false, nil
		}
		return err == nil, err
	})
}

// remove removes a key, if it is there.
func (b *board) remove(ctx context.Context, bucket jetstream.KeyValue, key string) error {
	_, err := engine.Request(ctx, b.engine, func(ctx context.Context) (struct{}, error) { return struct{}{}, bucket.Purge(ctx, key) })
	return err
}

// queued returns the message of a job in the queue; nil: there is none.
func (b *board) queued(ctx context.Context, class, id string) (*jetstream.RawStreamMsg, error) {
	return engine.Request(ctx, b.engine, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		m, err := b.jobs.GetLastMsgForSubject(ctx, b.subject(class, id))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, nil
		}
		return m, err
	})
}

// consumer is the name of a class's consumer.
func consumer(class string) string { return "class-" + class }

// presence is what a worker says of itself.
type presence struct {
	// Name is the worker's. Coordinates says that it is none, but a night.
	Name        string `json:"name"`
	Coordinates bool   `json:"coordinates,omitempty"`
	// Can are the classes that it can do. Lacks says of others what its host lacks.
	Can   []string                `json:"can,omitempty"`
	Lacks map[string]nightly.Lack `json:"lacks,omitempty"`
}

// mostClasses bounds the classes that a worker looks at, mostLacks those of which it says why it
// cannot do them.
const mostClasses, mostLacks = 4096, 100

func decodePresence(text []byte) (*presence, error) {
	p := &presence{}
	if len(text) > mostResult {
		return nil, inputf("a worker's document has %d bytes", len(text))
	}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, inputf("a worker's document: %w", err)
	}
	if len(p.Can) > mostClasses || len(p.Lacks) > mostLacks {
		return nil, inputf("a worker's document has %d classes", len(p.Can)+len(p.Lacks))
	}
	for class, l := range p.Lacks {
		l.Name, l.BuildID = short(l.Name), short(l.BuildID)
		p.Lacks[class] = l
	}
	return p, nil
}
