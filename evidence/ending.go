package evidence

import "fmt"

// Ending is what a program that ended itself wrote before, and which of its system
// calls had failed. Only a recording tells it.
type Ending struct {
	// Messages are the last texts that the program wrote to its standard error, its
	// standard output and the file by which it is declared to have failed, in the order of the writes. EarlierMessages counts older ones
	// that are left out.
	Messages        []Message `json:"messages,omitempty"`
	EarlierMessages int       `json:"earlier_messages,omitempty"`
	// Calls are the last system calls that failed, in their order. EarlierCalls counts
	// older ones that are left out.
	Calls        []FailedCall `json:"failed_calls,omitempty"`
	EarlierCalls int          `json:"earlier_failed_calls,omitempty"`
	// Panic is what the runtime of a language reported when it gave up; nil: nothing, or
	// the process did not end because of it.
	Panic *Panic `json:"panic,omitempty"`
}

// Stream is where a program wrote to.
type Stream string

// The streams that a program writes.
const (
	StandardOutput Stream = "stdout"
	StandardError  Stream = "stderr"
	// DeclaredFile is the file by which the run is declared to have failed (DeclaredFailure).
	DeclaredFile Stream = "file"
)

// Message is text that a program wrote to a stream, by one write or several in a row
// from the same place.
type Message struct {
	Stream Stream `json:"stream"`
	// Text is the written text, without Omitted bytes at its beginning.
	Text    string `json:"text"`
	Omitted int    `json:"omitted_bytes,omitempty"`
	// File is the name of the DeclaredFile. Differs: the write gave the byte that differs from the
	// expected one, which is in the first line of Text.
	File    string `json:"file,omitempty"`
	Differs bool   `json:"differs,omitempty"`
	Seen
}

// FailedCall is a system call that returned an error.
type FailedCall struct {
	// Call is the call as a C expression, with the paths that it was given; Error the
	// error's symbol and Meaning its text: "ENOENT", "no such file or directory".
	Call    string    `json:"call"`
	Error   ErrorName `json:"error"`
	Meaning string    `json:"meaning,omitempty"`
	// ByRecorder: the recorder refused it, and not the kernel.
	ByRecorder bool `json:"by_recorder,omitempty"`
	// Times counts equal calls that failed equally; the rest is of the last one.
	Times int `json:"times"`
	// Alike counts earlier calls by the same code, in the same calls, that failed in the same
	// way with other arguments: a search through directories. AlikePaths are the paths that the
	// last of them were given, in their order.
	Alike      int      `json:"alike,omitempty"`
	AlikePaths []string `json:"alike_paths,omitempty"`
	Seen
}

// ErrorName is the symbol of an errno value: "ENOENT".
type ErrorName string

// Seen is when and by whom a system call was made.
type Seen struct {
	// Moment is after the call, in Thread; Position counts the events of all threads up
	// to the call.
	Moment   Moment    `json:"moment"`
	Position uint64    `json:"position"`
	Thread   ThreadRef `json:"thread"`
	// Stack is the caller's, Site the innermost place of the program's own code in it.
	// Both are missing if no replay reached the call.
	Stack Stack `json:"stack"`
	Site  *Site `json:"site,omitempty"`
	Proof Proof `json:"proof"`
}

// Language is a programming language whose runtime reports failures itself.
type Language string

// The languages.
const (
	Rust   Language = "Rust"
	Go     Language = "Go"
	Python Language = "Python"
)

// Panic is a failure that the runtime of a language reported.
type Panic struct {
	Language Language `json:"language"`
	// Text is the message, Function, File and Line the place that it names; Line 0 is
	// not known.
	Text     string `json:"text"`
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	// Message is the index in Messages of the text that says so.
	Message int `json:"message"`
	// Joined: the panic was of a thread, and the process ended by that of the thread that joined it, which unwrapped the result. It is in
	// Messages at this index; nil: the process ended by the panic itself.
	Joined *int  `json:"joined,omitempty"`
	Proof  Proof `json:"proof"`
}

func (e *Ending) check() error {
	for i := range e.Messages {
		m := &e.Messages[i]
		standard := m.Stream == StandardOutput || m.Stream == StandardError
		if !standard && m.Stream != DeclaredFile || standard != (m.File == "") || standard && m.Differs || !m.Proof.Valid() {
			return fmt.Errorf("message %d: stream %q, proof %q", i, m.Stream, m.Proof)
		}
	}
	for i := range e.Calls {
		c := &e.Calls[i]
		if c.Call == "" || c.Error == "" || c.Times < 1 || c.Alike < 0 || c.Alike == 0 && c.AlikePaths != nil || !c.Proof.Valid() {
			return fmt.Errorf("failed call %d: %q, error %q, %d times, proof %q", i, c.Call, c.Error, c.Times, c.Proof)
		}
	}
	if p := e.Panic; p != nil && (p.Text == "" || !p.Proof.Valid() || p.Message < 0 || p.Message >= len(e.Messages)) {
		return fmt.Errorf("the panic has no text, no proof level or no message")
	}
	if p := e.Panic; p != nil && p.Joined != nil && (*p.Joined < 0 || *p.Joined >= len(e.Messages) || *p.Joined == p.Message) {
		return fmt.Errorf("the panic of the thread that joined has no message")
	}
	return nil
}
