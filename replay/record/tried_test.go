package record

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestTriedPlans(t *testing.T) {
	want := TriedPlans{{Hash: 1<<63 + 5, Events: 1 << 40, Thread: 3, Ordinal: 300}, {Hash: 7}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var have TriedPlans
	if err := json.Unmarshal(text, &have); err != nil || !reflect.DeepEqual(have, want) {
		t.Errorf("%+v, %v", have, err)
	}
	many, err := json.Marshal(make(TriedPlans, MostTried+1))
	if err != nil {
		t.Fatal(err)
	}
	for bad, says := range map[string]string{
		`3`:                              "cannot unmarshal",
		`"!"`:                            "illegal base64",
		`"AAAA"`:                         "cut off",
		string(text[:len(text)-5]) + `"`: "",
		string(many):                     "more than",
	} {
		err := json.Unmarshal([]byte(bad), &have)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40s: %v, want %q", bad, err, says)
		}
	}
	// It fits into the file, whose size is limited.
	f := &Found{Version: FoundVersion, Timing: TimingEager, Partial: true, By: "search", Tried: want}
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	again, err := DecodeFound(data)
	if err != nil || !reflect.DeepEqual(again.Tried, want) {
		t.Errorf("%+v, %v", again, err)
	}
	if len(many) > mostFound/4 {
		t.Errorf("%d bytes of %d", len(many), mostFound)
	}
}
