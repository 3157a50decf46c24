package tracker

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the reason why a tracker did not carry out a request.
type Kind string

// The kinds.
const (
	// Down: the tracker cannot be reached, answers too late or in part, fails, or accepts no more
	// requests for now. Another night may succeed.
	Down Kind = "down"
	// Denied: the token is missing, wrong, or not allowed to do that.
	Denied Kind = "denied"
	// Missing: there is no such project or issue, or none that the token may see.
	Missing Kind = "missing"
	// Refused: the tracker refuses the request, and would refuse it the next time.
	Refused Kind = "refused"
)

// Error is the failure of a request to a tracker. It holds no token.
type Error struct {
	Kind Kind
	// Tracker is its name.
	Tracker string
	// Status is that of HTTP, 0 if there was no answer.
	Status int
	// Code is the tracker's own, 0 without one.
	Code int
	// Until is when the tracker accepts requests again, zero if it did not say so.
	Until time.Time
	Err   error

	// unsure: the request may have been carried out all the same.
	unsure bool
	// tooLong: a text of the request is longer than the tracker accepts.
	tooLong bool
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %v", e.Tracker, e.Err)
	if !e.Until.IsZero() {
		text += ", to be asked again after " + moment(e.Until)
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Final reports whether further requests to the tracker are pointless for now.
func Final(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind != Refused
}

func kindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func unsure(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.unsure
}

func tooLong(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.tooLong
}

func asError(err error) *Error {
	var e *Error
	errors.As(err, &e)
	return e
}
