package page

import (
	"fmt"
	"net/http"
	"time"

	"diagnose/corpus"
	"diagnose/reports"
)

// writeTime bounds the time of one write of a download.
const writeTime = time.Minute

// archive sends a failure as 'diagnose corpus export' writes it.
func (s *Server) archive(q *request) error {
	st, err := q.state()
	if err != nil {
		return err
	}
	e, err := q.failureOf(st)
	if err != nil {
		return err
	}
	if e.DroppedAt != nil {
		return notFound("the files of this failure were dropped")
	}
	select {
	case s.downloads <- struct{}{}:
		defer func() { <-s.downloads }()
	default:
		return &statusError{http.StatusServiceUnavailable, "too many downloads at once; try again later"}
	}
	h := q.w.Header()
	h.Set("Content-Type", "application/zstd")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "failure-"+short(e.ID)+".tar.zst"))
	out := &download{w: q.w, control: http.NewResponseController(q.w)}
	n, err := s.opts.Corpus.Export(q.Context(), out, corpus.Filter{IDs: []string{e.ID}})
	if err == nil && n == 0 {
		err = fmt.Errorf("the failure %s is gone", e.ID)
	}
	if err != nil && out.begun {
		// The reader must see that the file is not whole.
		s.opts.Log.Print(reports.Message(q.URL.Path + ": " + err.Error()))
		panic(http.ErrAbortHandler)
	}
	return err
}

// download writes to a reader who may be slow, but not stand still.
type download struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (d *download) Write(p []byte) (int, error) {
	d.begun = true
	// A test's writer has no connection, and no deadline.
	_ = d.control.SetWriteDeadline(time.Now().Add(writeTime))
	return d.w.Write(p)
}
