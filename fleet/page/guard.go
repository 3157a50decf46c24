package page

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"diagnose/corpus"
	"diagnose/reports"
)

// hostNames are the names that a request may have for this server. A page of a stranger whose name
// is made to lead here (DNS rebinding) has another one. Addresses are no names, and always taken.
func hostNames(more []string) map[string]bool {
	names := map[string]bool{"localhost": true}
	if name, err := os.Hostname(); err == nil {
		names[strings.ToLower(name)] = true
	}
	for _, name := range more {
		names[strings.ToLower(name)] = true
	}
	return names
}

// knownHost reports whether the host of a request, with or without a port, is one of the server's.
func (s *Server) knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return net.ParseIP(host) != nil || s.hosts[strings.ToLower(strings.TrimSuffix(host, "."))]
}

// guard does what every request needs before it is answered: the limits, the header, the checks of
// the host, of the origin and of the token.
func (s *Server) guard(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeader(w.Header())
		select {
		case s.requests <- struct{}{}:
			defer func() { <-s.requests }()
		default:
			w.Header().Set("Retry-After", "5")
			http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
			return
		}
		if !s.knownHost(r.Host) {
			http.Error(w, "this server is not called so; --host names it", http.StatusMisdirectedRequest)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, mostForm)
		if err := origin.Check(r); err != nil {
			http.Error(w, "the request is of a page of another site", http.StatusForbidden)
			return
		}
		if r.URL.Path != loginPath && !s.session.allows(r) {
			if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
				http.Redirect(w, r, loginPath+"?"+url.Values{nextField: {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
				return
			}
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// setHeader sets what every answer has. The pages name their style and script by digests, so that
// nothing else in them can act as one, whatever a corpus has in it (CSP level 3, 6.7.3.3).
func setHeader(h http.Header) {
	for k, v := range map[string]string{
		"Content-Security-Policy":      pagePolicy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "same-origin", // "no-referrer" would make the origin of forms "null"
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
	} {
		h.Set(k, v)
	}
}

// statusError is an error that a reader is told, with the status of HTTP.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

func notFound(text string) error   { return &statusError{http.StatusNotFound, text} }
func badRequest(text string) error { return &statusError{http.StatusBadRequest, text} }

// request is a request with its answer.
type request struct {
	*http.Request
	w      http.ResponseWriter
	server *Server
}

// state returns the state of the corpus.
func (q *request) state() (*state, error) { return q.server.keep.state(q.Context()) }

// missing answers a path that is no page.
func (s *Server) missing(*request) error { return notFound("there is no such page") }

// fail tells the reader of an error. What the reader did not cause is told to the log only.
func (s *Server) fail(q *request, err error) {
	if q.Context().Err() != nil {
		return // the reader is gone
	}
	var told *statusError
	var input *corpus.InputError
	switch {
	case errors.As(err, &told):
	case errors.As(err, &input):
		told = &statusError{http.StatusBadRequest, err.Error()}
	default:
		s.opts.Log.Print(reports.Message(q.URL.Path + ": " + err.Error()))
		told = &statusError{http.StatusInternalServerError, "the request failed; the server's log says why"}
	}
	p := s.frame(q, "Error "+http.StatusText(told.status), "")
	if err := s.render(q, told.status, "error", struct {
		frame
		Text string
	}{p, reports.Message(told.text)}); err != nil {
		s.opts.Log.Print(reports.Message(err.Error()))
	}
}
