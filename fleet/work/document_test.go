package work

import (
	"encoding/json"
	"testing"
	"time"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
)

func sampleJob() *Job {
	entry := "00112233"
	return &Job{Version: JobVersion, ID: jobID(entry, "v1"), Entry: entry, Kind: corpus.KindCore,
		Failure: Files{"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", "."},
		Needs:   Needs{Diagnose: "v1", Architecture: "amd64", Objects: []Object{{"/usr/bin/true", "00ff"}}}, Time: time.Minute, Memory: 1 << 30}
}

// Each change makes a job that is refused.
func TestDecodeJob(t *testing.T) {
	text, err := json.Marshal(sampleJob())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeJob(text); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Job){
		"version":   func(j *Job) { j.Version = 2 },
		"id":        func(j *Job) { j.Entry = "00112234" },
		"kind":      func(j *Job) { j.Kind = "program" },
		"tree":      func(j *Job) { j.Failure.Tree = "../x" },
		"inside":    func(j *Job) { j.Failure.Inside = "a/../../b" },
		"time":      func(j *Job) { j.Time = 0 },
		"memory":    func(j *Job) { j.Memory = -1 },
		"passing":   func(j *Job) { j.Passing = make([]Files, mostPassing+1) },
		"relative":  func(j *Job) { j.Needs.Objects[0].Path = "usr/bin/true" },
		"unclean":   func(j *Job) { j.Needs.Objects[0].Path = "/usr/../etc/shadow" },
		"build-id":  func(j *Job) { j.Needs.Objects[0].BuildID = "" },
		"features":  func(j *Job) { j.Needs.Features = make([]string, mostFeatures+1) },
		"nameless":  func(j *Job) { j.Needs.Features = []string{""} },
		"anonymous": func(j *Job) { j.Needs.Diagnose = "" },
	} {
		j := sampleJob()
		change(j)
		text, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeJob(text); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Documents of the engine never end the process, and those that are taken are within the limits.
func FuzzDocuments(f *testing.F) {
	for _, sample := range []any{sampleJob(), sampleJob().Needs,
		&Result{Version: JobVersion, Job: sampleJob().ID, Tries: []nightly.Try{{Worker: "a"}}, SetAside: true}, presence{Name: "a", Can: []string{"b"}, Lacks: map[string]nightly.Lack{"c": {Kind: nightly.LackObject}}},
		tries{List: []nightly.Try{{Error: "it broke"}}}} {
		text, err := json.Marshal(sample)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if j, err := decodeJob(text); err == nil && (len(j.Passing) > mostPassing || len(j.Needs.Objects) > mostObjects) {
			t.Errorf("%+v", j)
		}
		n := Needs{}
		if json.Unmarshal(text, &n) == nil {
			if class, err := n.class(); err == nil {
				decodeNeeds(class, text)
			}
		}
		if r, err := decodeResult(sampleJob().ID, text); err == nil {
			if len(r.Tries) > mostTries || len(r.Reason) > longestText+3 {
				t.Errorf("%+v", r)
			}
			if r.Report != nil {
				unpack(r.Report)
			}
			r.finish(text)
		}
		decodePresence(text)
		decodeTries(text)
	})
}

// A host lacks a file that has another build-id, or none.
func TestLacks(t *testing.T) {
	h := &Host{Diagnose: "v1", Architecture: "amd64", Features: featuresOf([]byte("processor\t: 0\nflags\t\t: fpu avx2 constant_tsc avx\n")), Kernel: []Ability{AbilityPtrace}}
	for name, x := range map[string]struct {
		needs Needs
		want  nightly.LackKind
	}{
		"nothing":      {Needs{"v1", "amd64", []string{"avx", "avx2", "fpu"}, []Ability{AbilityPtrace}, nil}, ""},
		"version":      {Needs{"v2", "amd64", nil, nil, nil}, nightly.LackVersion},
		"architecture": {Needs{"v1", "arm64", nil, nil, nil}, nightly.LackArchitecture},
		"feature":      {Needs{"v1", "amd64", []string{"avx512f"}, nil, nil}, nightly.LackFeature},
		"kernel":       {Needs{"v1", "amd64", nil, []Ability{"bpf"}, nil}, nightly.LackKernel},
		"object":       {Needs{"v1", "amd64", nil, nil, []Object{{"/nowhere/at/all", "00"}}}, nightly.LackObject},
	} {
		got := h.lacks(&x.needs)
		if (got == nil) != (x.want == "") || got != nil && got.Kind != x.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A class is not given up while the engine is silent, and not before the patience is over.
func TestRoster(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRoster()
	ask := func(at time.Time) (*nightly.Lack, bool) { return r.unable("c", time.Minute, at) }
	if _, unable := ask(now); unable {
		t.Error("unable though nothing was heard")
	}
	r.add("night", &presence{Coordinates: true}, now)
	ask(now)
	r.add("w", &presence{Can: []string{"c"}}, now.Add(30*time.Second))
	if _, unable := ask(now.Add(time.Minute + time.Second)); unable {
		t.Error("unable though a worker came")
	}
	lack := nightly.Lack{Kind: nightly.LackObject, Name: "/bin/x"}
	for s := 70; s <= 150; s += 10 {
		at := now.Add(time.Duration(s) * time.Second)
		r.add("night", &presence{Coordinates: true}, at)
		r.add("w", &presence{Lacks: map[string]nightly.Lack{"c": lack}}, at)
		got, unable := ask(at)
		if unable != (s >= 130) || unable && *got != lack {
			t.Errorf("after %d s: %v, %v", s, got, unable)
		}
	}
}
