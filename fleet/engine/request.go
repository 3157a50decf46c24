package engine

import "context"

// Request performs a request to JetStream, and repeats it while the server is away, for as long
// as Options.Patience says. So the request must be one that may be done twice. Its errors have
// the types of this package; those of JetStream that say more than that are below them.
func Request[T any](ctx context.Context, e *Engine, request func(context.Context) (T, error)) (T, error) {
	return run(ctx, e, request)
}
