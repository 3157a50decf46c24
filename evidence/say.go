package evidence

import "sync/atomic"

// reworded is what a test puts in place of the words.
var reworded atomic.Pointer[func(string) string]

// Say is what every sentence for people passes through that is made from facts. It
// returns the text. Nothing decides by such a sentence: a test has Say return others and
// compares all that is not text.
func Say(text string) string {
	if f := reworded.Load(); f != nil && text != "" {
		return (*f)(text)
	}
	return text
}

// Reword has Say return other words until restore is called. It is for tests.
func Reword(words func(string) string) (restore func()) {
	old := reworded.Swap(&words)
	return func() { reworded.Store(old) }
}
