package work

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"time"

	"diagnose/corpus"
	"diagnose/corpus/analysis"
	"diagnose/corpus/nightly"
	"diagnose/fleet/engine"
)

const (
	// mostResult is the maximum size of a result in JSON, in bytes, with a report in it of up to
	// mostInline bytes of gzip. The payload of a message is bounded by the server, 1 MiB by default.
	mostResult, mostInline = 768 << 10, 384 << 10
	// longestText bounds a reason and the log of a try, in bytes.
	longestText = 8 << 10
	// mostTries is how many tries a job gets.
	mostTries = 3
)

// Result is what a worker hands back for a job.
type Result struct {
	// Version is JobVersion, Job the job's id, Diagnose the worker's version.
	Version  int    `json:"version"`
	Job      string `json:"job"`
	Diagnose string `json:"diagnose"`
	// Worker made it. Its count of failures is not set.
	Worker nightly.FleetWorker `json:"worker"`
	// Report is the JSON document of "diagnose crash", compressed with gzip, or Tree has it as
	// the file reportName; neither: there is none. Reason says why, or what the report lacks.
	Report []byte `json:"report,omitempty"`
	Tree   string `json:"tree,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Started, Took, CPU and Memory are those of corpus.Diagnosis.
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took_ns"`
	CPU     time.Duration `json:"cpu_ns"`
	Memory  int64         `json:"memory_bytes"`
	// Tries are those before this one. SetAside says that they were too many, so that there was none.
	Tries    []nightly.Try `json:"tries,omitempty"`
	SetAside bool          `json:"set_aside,omitempty"`
}

// reportName is the file of a report in its tree.
const reportName = "report.json"

// decodeResult reads the result of a job, which may be hostile.
func decodeResult(id string, text []byte) (*Result, error) {
	if len(text) > mostResult {
		return nil, inputf("the result has %d bytes, and %d are allowed", len(text), mostResult)
	}
	r := &Result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, inputf("the result: %w", err)
	}
	switch {
	case r.Version != JobVersion || r.Job != id:
		return nil, inputf("the result is of version %d and of the job %.40q", r.Version, r.Job)
	case len(r.Tries) > mostTries || r.SetAside && (r.Report != nil || r.Tree != ""):
		return nil, inputf("the result has %d tries, or is set aside and has a report", len(r.Tries))
	case r.Took < 0 || r.CPU < 0 || r.Memory < 0:
		return nil, inputf("the result took less than no time or memory")
	}
	if r.Tree != "" {
		if err := engine.CheckReference(r.Tree); err != nil {
			return nil, inputf("the result: %w", err)
		}
	}
	r.Reason, r.Tries = short(r.Reason), shortTries(r.Tries)
	for _, text := range []*string{&r.Worker.Name, &r.Worker.Host, &r.Worker.MemoryWhy, &r.Worker.FreeWhy} {
		*text = short(*text)
	}
	return r, nil
}

func shortTries(list []nightly.Try) []nightly.Try {
	for i := range list {
		for _, text := range []*string{&list[i].Worker, &list[i].Host, &list[i].Error} {
			*text = short(*text)
		}
	}
	return list
}

// short returns the end of a text that is too long: logs say last why they end.
func short(text string) string {
	if len(text) <= longestText {
		return text
	}
	return "..." + text[len(text)-longestText:]
}

// finish makes of a result, and of the report that it leads to, what the corpus stores. All that
// follows from the report is computed again, and not taken from the worker.
func (r *Result) finish(report []byte) (*corpus.Result, error) {
	out := &corpus.Result{Diagnosis: corpus.Diagnosis{Version: r.Diagnose, Reason: r.Reason, Started: r.Started, Took: r.Took, CPU: r.CPU, Memory: r.Memory}}
	if report == nil {
		if out.Reason == "" {
			return nil, inputf("the result has no report and no reason")
		}
		return out, nil
	}
	if err := analysis.Fill(out, report); err != nil {
		return nil, inputf("the result's report: %w", err)
	}
	out.Diagnosed = true
	return out, nil
}

// pack compresses a report.
func pack(report []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(report)
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
}

// unpack decompresses a report that may be hostile.
func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, inputf("the result's report: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, analysis.MostReport+1))
	if err == nil && len(text) > analysis.MostReport {
		err = inputf("it has more than %d bytes", analysis.MostReport)
	}
	if err != nil {
		return nil, inputf("the result's report: %w", err)
	}
	return text, nil
}

// tries is the document of who began a job.
type tries struct {
	List []nightly.Try `json:"tries"`
}

func decodeTries(text []byte) (*tries, error) {
	t := &tries{}
	if len(text) > mostResult {
		return nil, inputf("the tries have %d bytes, and %d are allowed", len(text), mostResult)
	}
	if err := json.Unmarshal(text, t); err != nil {
		return nil, inputf("the tries: %w", err)
	}
	if len(t.List) > mostTries {
		return nil, inputf("the job has %d tries, and %d are allowed", len(t.List), mostTries)
	}
	t.List = shortTries(t.List)
	return t, nil
}
