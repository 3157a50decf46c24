package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// InputError says that the input is wrong: options, a reference that the engine does not
// have, a directory, a tree that is damaged or exceeds the limits.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// UnreachableError says that no server answered in time.
type UnreachableError struct {
	// URL is the server, without secrets.
	URL string
	Err error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the engine %s does not answer: %v", e.URL, e.Err)
}
func (e *UnreachableError) Unwrap() error { return e.Err }

// DeniedError says that the server refuses this user: its credential, or its permissions.
type DeniedError struct{ Err error }

func (e *DeniedError) Error() string {
	return fmt.Sprintf("the engine refuses this user: %v", e.Err)
}
func (e *DeniedError) Unwrap() error { return e.Err }

// FullError says that the engine's limits leave no room. What was stored before stays, and the
// operation resumes when it is called again.
type FullError struct{ Err error }

func (e *FullError) Error() string {
	return fmt.Sprintf("the engine has no room: %v", e.Err)
}
func (e *FullError) Unwrap() error { return e.Err }

// sort gives an error of NATS its type. Other errors are returned as they are.
func (e *Engine) sort(err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &api) && noRoom(server.ErrorIdentifier(api.ErrorCode), api.Description):
		return &FullError{err}
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired), errors.Is(err, nats.ErrPermissionViolation):
		return &DeniedError{err}
	case errors.Is(err, nats.ErrConnectionClosed) && e.conn != nil:
		if last := e.conn.LastError(); last != nil && !errors.Is(last, nats.ErrConnectionClosed) {
			return e.sort(fmt.Errorf("the connection ended: %w", last))
		}
	}
	return err
}

// noRoom: the codes are those of the server's errors.json. Limits of a stream have the code of
// any failed store, and only their description.
func noRoom(code server.ErrorIdentifier, description string) bool {
	switch code {
	case server.JSInsufficientResourcesErr, server.JSStorageResourcesExceededErr, server.JSMemoryResourcesExceededErr,
		server.JSAccountResourcesExceededErr, server.JSMaximumStreamsLimitErr:
		return true
	case server.JSStreamStoreFailedF:
		return description == server.ErrMaxBytes.Error() || description == server.ErrMaxMsgs.Error()
	}
	return false
}

// transient reports whether an error may pass: the server is away, or has just started.
func transient(err error) bool {
	var network net.Error // a write to a connection that broke just now
	if errors.As(err, &network) {
		return true
	}
	for _, one := range []error{io.EOF, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded,
		nats.ErrNoServers, nats.ErrStaleConnection, jetstream.ErrNoStreamResponse, jetstream.ErrJetStreamNotEnabled, context.DeadlineExceeded} {
		if errors.Is(err, one) {
			return true
		}
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && server.ErrorIdentifier(api.ErrorCode) == server.JSClusterNotAvailErr
}
