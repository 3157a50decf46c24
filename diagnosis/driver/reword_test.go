package driver_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/reports"
)

// pseudo writes a sentence in full-width forms: no letter and no mark of it stays, so nothing
// finds a word in it, nor the end of a clause.
func pseudo(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= ' ' && r <= '~' {
			return r - ' ' + blank
		}
		return r
	}, text)
}

// plain takes that back.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if isPseudo(r) {
			return r - blank + ' '
		}
		return r
	}, text)
}

// blank is the form of a space; those of other characters follow it.
const blank = '\uff00'

func isPseudo(r rune) bool { return r >= blank && r <= blank+'~'-' ' }

// sentences are the fields that only have sentences of ours, mixed those that may have texts of the
// program instead, or parts of sentences. No other field may have a word of a sentence.
var (
	sentences = map[string]bool{"Failure.Sentence": true, "Finding.Summary": true, "Fact.Text": true, "Place.Text": true, "OriginStep.Text": true,
		"Stack.Stopped": true, "ThreadGroup.Waiting": true, "Limit.Text": true}
	mixed = map[string]bool{"Failure.Message": true, "Value.Text": true, "Value.Unavailable": true, "Value.Details": true, "Exception.WhatUnavailable": true, "Limit.Reason": true, "Fact.Name": true}
)

// TestReworded is the twin of that in package verdict, for a core and a live process without a
// recording: nothing but text differs where every sentence has other words.
func TestReworded(t *testing.T) {
	names := []string{"null_read", "null_call", "frame_too_large", "deadlock_cycle", "stack_smashing", "use_after_free", "cxx_throw_in_unwinding",
		"cxx_library_assertion", "handler_raises", "protected_page"}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			x := crashtest.Named(t, name).Crash(t, crashtest.Variant{Name: "O0", Flags: []string{"-O0"}})
			sameInOtherWords(t, driver.Request{Core: x.Core})
		})
	}
}

// Optimized programs have arguments that are lost for a reason with details, of which a stack shows
// the reason alone. The sentence about an abort has the message, which is then not said twice.
func TestRewordedOptimized(t *testing.T) {
	for name, message := range map[string]bool{"double_free": true, "callback_context": false} {
		t.Run(name, func(t *testing.T) {
			x := crashtest.Named(t, name).Crash(t, crashtest.Variant{Name: "O2", Flags: []string{"-O2"}})
			c := sameInOtherWords(t, driver.Request{Core: x.Core})
			if c.Failure.MessageInSentence != message {
				t.Errorf("%q has the message %q: %v", c.Failure.Sentence, c.Failure.Message, !message)
			}
			if !message && !lostForDetails(c) {
				t.Error("no argument is lost for a reason with details")
			}
		})
	}
}

func lostForDetails(c *evidence.Case) bool {
	for _, s := range c.Stacks {
		for _, f := range s.Stack.Frames {
			if slices.ContainsFunc(f.Args, func(v evidence.Variable) bool { return v.Value.Details != "" }) {
				return true
			}
		}
	}
	return false
}

// A live process has waits and stacks, and no failure.
func TestRewordedLive(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "waits.c", Flags: []string{"-pthread", "-g"}, Text: `
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static void *wait_for_it(void *unused) { pthread_mutex_lock(&a); return unused; }
int main(void)
{
	pthread_t t;
	pthread_mutex_lock(&a);
	pthread_create(&t, 0, wait_for_it, 0);
	pthread_join(t, 0);
	return 0;
}`})
	cmd := exec.Command(exe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	last := "the process is not seen to hang"
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if c := crash(t, driver.Request{PID: cmd.Process.Pid}); c.Failure.Kind != evidence.Deadlock {
			continue
		}
		// A wait that a look has interrupted may begin again between two others, at an earlier instruction.
		if _, last = inOtherWords(t, driver.Request{PID: cmd.Process.Pid}); last == "" {
			return
		}
	}
	t.Error(last)
}

// sameInOtherWords returns the case with the usual words.
func sameInOtherWords(t *testing.T, req driver.Request) *evidence.Case {
	t.Helper()
	first, difference := inOtherWords(t, req)
	if difference != "" {
		t.Fatal(difference)
	}
	return first
}

// inOtherWords returns the case with the usual words, and how that with other words differs in more than those.
func inOtherWords(t *testing.T, req driver.Request) (first *evidence.Case, difference string) {
	t.Helper()
	first = crash(t, req)
	restore := evidence.Reword(pseudo)
	other := crash(t, req)
	restore()
	checkWords(t, reflect.ValueOf(other), "")
	return first, cmp.Or(differentLine(documentOf(t, other), documentOf(t, first)), differentLine(plain(reportOf(t, other)), reportOf(t, first)))
}

func differentLine(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			return fmt.Sprintf("line %d differs with other words: %q, was %q", i+1, g[min(i, len(g)-1)], w[min(i, len(w)-1)])
		}
	}
	return ""
}

// documentOf is the case in JSON with the plain form of its strings, each on its own line.
func documentOf(t *testing.T, c *evidence.Case) string {
	t.Helper()
	c.Timings = nil
	b, err := json.Marshal(c)
	var document any
	if err == nil {
		err = json.Unmarshal(b, &document)
	}
	if err == nil {
		b, err = json.MarshalIndent(plainStrings(document), "", " ")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func plainStrings(part any) any {
	switch part := part.(type) {
	case string:
		return plain(part)
	case []any:
		for i := range part {
			part[i] = plainStrings(part[i])
		}
	case map[string]any:
		for name := range part {
			part[name] = plainStrings(part[name])
		}
	}
	return part
}

// reportOf is the text for people without spaces and ends of lines, which depend on widths.
func reportOf(t *testing.T, c *evidence.Case) string {
	t.Helper()
	var b strings.Builder
	if err := reports.Write(&b, c, reports.Options{Format: reports.Text}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.FieldsFunc(b.String(), func(r rune) bool { return r == blank || unicode.IsSpace(r) }), "\n")
}

// checkWords finds sentences without other words, and words where there are only facts.
func checkWords(t *testing.T, v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.String:
		text := v.String()
		switch {
		case v.Type() == reflect.TypeFor[string]() && (mixed[field] || text == ""):
		case sentences[field] && text != pseudo(text):
			t.Errorf("%s is no sentence of evidence.Say: %q", field, text)
		case !sentences[field] && strings.ContainsFunc(text, isPseudo):
			t.Errorf("%s has words of a sentence: %q", field, text)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			checkWords(t, v.Elem(), field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkWords(t, v.Index(i), field)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			checkWords(t, v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name)
		}
	}
}
