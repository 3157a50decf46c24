package page

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"diagnose/corpus"
	"diagnose/evidence/suppress"
	"diagnose/reports"
)

// The bounds of the server.
const (
	headerTime = 10 * time.Second
	// answerTime bounds an answer, but for a download, which is bounded from write to write.
	answerTime = time.Minute
	idleTime   = 2 * time.Minute
	// mostHeader bounds the header of a request, mostForm its body, in bytes.
	mostHeader = 64 << 10
	mostForm   = 16 << 10
	// mostRequests bounds the requests that are answered at once, mostDownloads the downloads and
	// mostLogins the logins among them.
	mostRequests  = 64
	mostDownloads = 4
	mostLogins    = 4
	// endTime is how long answers may take to end when the server is stopped.
	endTime = 5 * time.Second
)

// Options are the corpus that a server shows, and its readers.
type Options struct {
	// Corpus is open for reading. Only label changes open it for changes, each for itself.
	Corpus *corpus.Corpus
	// Token is what readers have to know; empty: whoever reaches the address may read.
	Token []byte
	// Hosts are names by which the server is reached, beside those of this machine: that of a
	// proxy before it.
	Hosts []string
	// Known are the suppressions of a team, Redact is the text that is replaced beside secrets.
	Known  *suppress.List
	Redact *reports.Redaction
	// Version is that of diagnose.
	Version string
	// Log gets errors that a reader sees only as a failed request; nil: none does.
	Log *log.Logger
}

// Server answers requests about one corpus.
type Server struct {
	opts    Options
	keep    *keeper
	session *session
	hosts   map[string]bool
	names   *nameIndex

	requests, downloads, logins chan struct{}
	handler                     http.Handler
}

// New makes a server.
func New(opts Options) (*Server, error) {
	if opts.Corpus == nil {
		return nil, errors.New("page: there is no corpus")
	}
	if opts.Log == nil {
		opts.Log = log.New(discard{}, "", 0)
	}
	session, err := newSession(opts.Token)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, session: session, hosts: hostNames(opts.Hosts), names: newNameIndex(opts.Corpus),
		keep:     &keeper{corpus: opts.Corpus, known: opts.Known, redact: opts.Redact, now: time.Now},
		requests: make(chan struct{}, mostRequests), downloads: make(chan struct{}, mostDownloads), logins: make(chan struct{}, mostLogins)}
	s.handler = s.guard(s.routes())
	return s, nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// routes are the pages. A path has names of causes and failures only.
func (s *Server) routes() http.Handler {
	m := http.NewServeMux()
	for pattern, answer := range map[string]func(*request) error{
		"GET /{$}":                   s.morning,
		"GET /causes":                s.causesPage,
		"GET /failures":              s.failuresPage,
		"GET /cause/{digest}":        s.causePage,
		"GET /cause/{digest}/report": s.causeReport,
		"GET /failure/{id}":          s.failurePage,
		"GET /failure/{id}/report":   s.failureReport,
		"GET /failure/{id}/archive":  s.archive,
		"POST /failure/{id}/labels":  s.changeLabels,
		"GET /tests":                 s.testsPage,
		"GET /test":                  s.testPage,
		"GET /search":                s.searchPage,
		"GET /metrics":               s.metrics,
		"GET " + loginPath:           s.loginPage,
		"POST " + loginPath:          s.login,
		"POST " + logoutPath:         s.logout,
		"/":                          s.missing,
	} {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			q := &request{w: w, Request: r, server: s}
			if err := answer(q); err != nil {
				s.fail(q, err)
			}
		})
	}
	return m
}

// Serve answers requests on a listener until ctx ends, and then lets running answers end. If
// certificate and key are not empty, it speaks TLS with these files.
func (s *Server) Serve(ctx context.Context, l net.Listener, certificate, key string) error {
	// An answer that is being made ends with the server, not with ctx: it gets endTime.
	server := &http.Server{Handler: s, ReadHeaderTimeout: headerTime, ReadTimeout: answerTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: mostHeader, ErrorLog: s.opts.Log}
	following, stop := context.WithCancel(ctx)
	defer stop()
	go s.keep.follow(following, func(err error) { s.opts.Log.Print(reports.Message("the corpus: " + err.Error())) })
	ended := make(chan error, 1)
	go func() {
		if certificate != "" {
			ended <- server.ServeTLS(l, certificate, key)
		} else {
			ended <- server.Serve(l)
		}
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("page: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // a download is cut off
	}
	<-ended
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}
