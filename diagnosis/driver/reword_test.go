package driver_test

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// mark is before each letter of the reworded sentences: nothing finds a word in them.
const mark = "\u00a4"

func pseudo(text string) string { return mark + strings.Join(strings.Split(text, ""), mark) }

// sentences are the fields that only have sentences of ours, mixed those that may have texts of the
// program instead, or parts of sentences. No other field may have a word of a sentence.
var (
	sentences = map[string]bool{"Failure.Sentence": true, "Finding.Summary": true, "Fact.Text": true, "Place.Text": true, "OriginStep.Text": true,
		"Stack.Stopped": true, "ThreadGroup.Waiting": true, "Limit.Text": true}
	mixed = map[string]bool{"Failure.Message": true, "Exception.WhatUnavailable": true, "Limit.Reason": true, "Fact.Name": true}
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
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if c := crash(t, driver.Request{PID: cmd.Process.Pid}); c.Failure.Kind == evidence.Deadlock {
			sameInOtherWords(t, driver.Request{PID: cmd.Process.Pid})
			return
		}
	}
	t.Error("the process is not seen to hang")
}

func sameInOtherWords(t *testing.T, req driver.Request) {
	t.Helper()
	plain := crash(t, req)
	restore := evidence.Reword(pseudo)
	other := crash(t, req)
	restore()
	checkWords(t, reflect.ValueOf(other), "")
	text := func(c *evidence.Case) string {
		c.Timings = nil
		b, err := json.MarshalIndent(c, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want, got := strings.Split(text(plain), "\n"), strings.Split(strings.ReplaceAll(text(other), mark, ""), "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("line %d differs with other words: %q, was %q", i+1, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
}

// checkWords finds sentences without other words, and words where there are only facts.
func checkWords(t *testing.T, v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.String:
		text := v.String()
		switch {
		case v.Type() == reflect.TypeFor[string]() && (mixed[field] || text == ""):
		case sentences[field] && !strings.HasPrefix(text, mark):
			t.Errorf("%s is no sentence of evidence.Say: %q", field, text)
		case !sentences[field] && strings.Contains(text, mark):
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
