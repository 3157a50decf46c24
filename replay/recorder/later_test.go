package recorder

import (
	"errors"
	"testing"
	"time"
)

// A cancelled write does not happen, and cancel reports whether it was waiting.
func TestLaterCancelled(t *testing.T) {
	l := after(time.Hour, func() error {
		t.Error("it was written")
		return nil
	})
	if !l.cancel() || l.cancel() {
		t.Error("it waited, once")
	}
	var none *later
	if none.cancel() {
		t.Error("nothing waited")
	}
}

// A write that succeeded does not wait any more. A write that failed does.
func TestLaterWritten(t *testing.T) {
	for _, want := range []error{nil, errors.New("no room")} {
		written := make(chan bool, 1)
		l := after(time.Microsecond, func() error {
			written <- true
			return want
		})
		<-written
		if waited := l.cancel(); waited != (want != nil) {
			t.Errorf("%v: waiting is %v", want, waited)
		}
	}
}
