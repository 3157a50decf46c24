package main

import (
	"os"
	"path/filepath"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/replay/record"
)

// faults has several threads that fail at the same time.
const faults = `
#include <pthread.h>
static pthread_barrier_t met;
static int *volatile nothing;

static void *fault(void *unused)
{
	pthread_barrier_wait(&met);
	*nothing = 1;
	return unused;
}

int main(void)
{
	pthread_t threads[4];

	pthread_barrier_init(&met, NULL, 4);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, fault, NULL);
	pthread_join(threads[0], NULL);
}
`

// TestRecordFaultsAtOnce: the first of several threads that fail is the one that ended the process, and the core is kept.
func TestRecordFaultsAtOnce(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "faults.c", Text: faults, Flags: []string{"-O1", "-pthread"}})
	for range 15 { // without the rule about a half of them have no core
		dir := recordedAt(t, exe)
		if _, err := os.Stat(filepath.Join(dir, record.CoreName)); err != nil {
			t.Fatal(err)
		}
		rec, err := record.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if o := rec.Manifest.Outcome; o.Thread < 2 || o.PC == nil || o.FaultAddr == nil {
			t.Errorf("%+v", o)
		}
		rec.Close()
	}
}
