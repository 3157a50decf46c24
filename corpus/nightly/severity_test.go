package nightly

import (
	"bytes"
	"strings"
	"testing"

	"diagnose/evidence"
)

// A summary begins with the most severe causes, and text and page tell how severe each is.
func TestSeverity(t *testing.T) {
	s := sampleSummary()
	s.New[1].Class, s.New[1].Estimate = evidence.ClassUseAfterFreeWrite, evidence.Exploitable
	s.Known[1].Class, s.Known[1].Estimate = evidence.ClassAbortSignal, evidence.NotExploitable
	severe := s.New[1].Digest
	sortGroups(s.New)
	if s.New[0].Digest != severe {
		t.Errorf("the first cause is %s", s.New[0].Kind)
	}
	var text, page bytes.Buffer
	if err := s.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteHTML(&page, PageOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"EXPLOITABLE (heap-use-after-free(write))", "NOT_EXPLOITABLE (AbortSignal)"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(page.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
}
